"""`completion`: what a shell needs to complete our words.

Job: a script per shell that asks `__complete` and does what the answer's directive says.
"""

from sampan.cli.command import Command
from sampan.cli.errors import UsageError
from sampan.cli.flags import Values
from sampan.cli.session import Session

# Each answer ends in `:N`; the bits of N: 1 failed, 2 no space after it, 4 no files, 8 these are
# the endings of files.
BASH = r"""# bash completion for @program@
__start_@name@() {
    local cur words cword out directive candidate
    local -a found=()
    COMPREPLY=()
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref -n =: cur words cword
    else
        words=("${COMP_WORDS[@]}") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]}
    fi
    words=("${words[@]:0:cword+1}")
    out=$("${words[0]}" __complete "${words[@]:1}" 2>/dev/null) || return
    directive=${out##*:} out=${out%:*}
    ((directive & 1)) && return
    if ((directive & 8)); then
        local endings=${out//[[:space:]]/ }
        endings=${endings%% } endings="!*.@(${endings// /|})"
        shopt -q extglob || { shopt -s extglob; local reset=1; }
        mapfile -t COMPREPLY < <(compgen -d -- "$cur"; compgen -f -X "$endings" -- "$cur")
        [[ $reset ]] && shopt -u extglob
        compopt -o filenames 2>/dev/null
        return
    fi
    while IFS='' read -r candidate; do
        [[ $candidate && ${candidate%%$'\t'*} == "${cur#*=}"* ]] && found+=("$candidate")
    done <<<"$out"
    ((directive & 2)) && compopt -o nospace 2>/dev/null
    ((directive & 4)) || compopt -o default 2>/dev/null
    if ((${#found[@]} > 1)) && [[ $COMP_TYPE == 37 || $COMP_TYPE == 63 || $COMP_TYPE == 64 ]]; then
        # Only shown: each word with what is said of it.
        for candidate in "${found[@]}"; do
            local word=${candidate%%$'\t'*} said=${candidate#*$'\t'}
            [[ $candidate == *$'\t'* ]] && word+="  ($said)"
            COMPREPLY+=("${word:0:${COLUMNS:-80}}")
        done
        [[ $COMP_TYPE == 63 ]] && return
        COMPREPLY=()
    fi
    COMPREPLY=("${found[@]%%$'\t'*}")
    declare -F __ltrim_colon_completions >/dev/null && __ltrim_colon_completions "${cur#*=}"
}
complete -F __start_@name@ @program@
"""
ZSH = r"""#compdef @program@
compdef _@name@ @program@

_@name@() {
    local out directive line
    local -a lines described options
    out=$("${words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null) || return 1
    lines=("${(@f)out}")
    directive=${lines[-1]#:}
    lines=("${(@)lines[1,-2]}")
    (( directive & 1 )) && return 1
    if (( directive & 8 )); then
        _files -g "*.(${(j:|:)lines})" || _files -/
        return
    fi
    for line in $lines; do
        [[ -n $line ]] || continue
        # A colon would end the word; what is said of it comes after one.
        line=${line//:/\\:}
        described+=("${line/$'\t'/:}")
    done
    (( directive & 2 )) && options=(-S '')
    if (( $#described )) && _describe -V candidates described $options; then
        return
    fi
    (( directive & 4 )) || _files
}

[[ $funcstack[1] == _@name@ ]] && _@name@
"""
FISH = r"""# fish completion for @program@
function __@name@_candidates
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    set -l out ($before[1] __complete $before[2..-1] "$last" 2>/dev/null)
    test (count $out) -gt 0; or return
    set -l directive (string replace -r '^:' '' -- $out[-1])
    set -l found $out[1..-2]
    if test (math "bitand($directive, 1)") -ne 0
        return
    end
    if test (math "bitand($directive, 8)") -ne 0
        for ending in $found
            __fish_complete_suffix ".$ending"
        end
        return
    end
    set -l lead (string match -r '^-[^=]*=' -- "$last")
    for candidate in $found
        printf '%s%s\n' "$lead" "$candidate"
    end
    if test (count $found) -eq 0; and test (math "bitand($directive, 4)") -eq 0
        __fish_complete_path "$last"
    end
end
complete -c @program@ -e
complete -c @program@ -f -k -a '(__@name@_candidates)'
"""
POWERSHELL = r"""# powershell completion for @program@
Register-ArgumentCompleter -Native -CommandName '@program@' -ScriptBlock {
    param($WordToComplete, $CommandAst, $CursorPosition)
    $words = @($CommandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -le $CursorPosition } | ForEach-Object { "$_" })
    if ($WordToComplete -eq '') { $words += '""' }
    $out = @(& '@program@' __complete @words 2>$null)
    if ($out.Count -eq 0) { return }
    $directive = [int]($out[-1] -replace '^:', '')
    if ($directive -band 1 -or $directive -band 8) { return }
    $space = if ($directive -band 2) { '' } else { ' ' }
    $out | Select-Object -SkipLast 1 | ForEach-Object {
        $word, $said = $_ -split "`t", 2
        if (-not $said) { $said = $word }
        [System.Management.Automation.CompletionResult]::new("$word$space", $word, 'ParameterValue', $said)
    }
}
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH, "powershell": POWERSHELL}


def run(session: Session, values: Values) -> None:
    if not values.arguments:
        raise UsageError("Shell not specified.")
    if len(values.arguments) > 1:
        raise UsageError("Too many arguments. Expected only the shell type.")
    shell = values.arguments[0]
    if shell not in SCRIPTS:
        raise UsageError(f'Unsupported shell type "{shell}".')
    name = session.program.replace("-", "_")
    session.write(SCRIPTS[shell].replace("@program@", session.program).replace("@name@", name))


COMPLETION = Command(
    "completion", "completion SHELL [options]",
    "Output shell completion code for the specified shell (bash, zsh, fish, or powershell)", run,
)  # fmt: skip
