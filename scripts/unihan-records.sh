#!/bin/bash
# Writes the records of the Unihan database, as Debian's package unicode-data brings it, to stdout as lines
# KEY<tab>VALUE for `aiodb load`: the key is the code point and the property, such as "U+4E00 kMandarin".
set -euo pipefail

directory=${1:-/usr/share/unicode}

shopt -s nullglob
files=("$directory"/Unihan_*.txt "$directory"/Unihan_*.txt.bz2 "$directory"/Unihan_*.txt.gz)
if [ ${#files[@]} -eq 0 ]; then
    echo "unihan-records: no Unihan_*.txt files in $directory: install the package unicode-data" >&2
    exit 1
fi

for file in "${files[@]}"; do
    case $file in
        *.bz2) bzip2 --decompress --stdout "$file" ;;
        *.gz) gzip --decompress --stdout "$file" ;;
        *) cat "$file" ;;
    esac
# Lines that begin otherwise are comments or empty.
done | sed --quiet 's/^\(U+[0-9A-F]*\)\t/\1 /p'
