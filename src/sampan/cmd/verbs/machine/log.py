"""`sampan log`: what a cluster in the background wrote.

Job: print the log file of the data directory, and follow it where asked.
"""

import sys
import time

from sampan.cmd.cluster.data_dir import DataDirError, find_data_dir, holder

PAUSE_SECONDS = 0.2


def run(data_dir: str, *, follow: bool, lines: int) -> int:
    try:
        data = find_data_dir(data_dir)
    except DataDirError as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    if not data.log_file.exists():
        print(
            f"sampan: there is no log in {data.root}: only `sampan up --detach` writes one, in the "
            "foreground it goes to the terminal",
            file=sys.stderr,
        )
        return 1
    with data.log_file.open(errors="replace") as file:
        kept = file.readlines()
        sys.stdout.writelines(kept[-lines:] if lines >= 0 else kept)
        while follow:
            sys.stdout.flush()
            new = file.read()
            if new:
                sys.stdout.write(new)
            elif data.log_file.stat().st_size < file.tell():
                file.seek(0)  # it has begun anew
            elif holder(data) is None:
                break
            else:
                # A file has no event that every file system gives; the log is for people.
                time.sleep(PAUSE_SECONDS)
    return 0
