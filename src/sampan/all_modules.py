"""Empty module: the file that Python caches for it has the code of all modules.

Job: the name under which core/compiled_modules.py keeps its file. What Python caches for a module,
    pip removes with it; a file of any other name would stay behind in an empty package.
"""
