# Headings, times, skips and the closing line of the scripts beside this file, which source it.
#
#   begin NAME [STRICT]   once, first; prints the closing line whatever happens later
#   section TITLE CMD..   runs CMD under a heading; the first failure ends the script
#   skip WHAT WHY         says what is left out; an error under CI=true, where nothing may be skipped
#   need PROGRAM PACKAGE WHY   finds PROGRAM, or installs the Debian PACKAGE if root and apt-get are there, or skips

export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-auto}"

begin() {
    script=$1
    sections_done=0
    section_title="start"
    section_began=$SECONDS
    skipped=()
    trap close EXIT
}

section() {
    section_title=$1
    section_began=$SECONDS
    shift
    printf '\n=== %s: %s\n' "$script" "$section_title"
    "$@"
    sections_done=$((sections_done + 1))
    printf -- '--- %s: %s, ok in %s\n' "$script" "$section_title" "$(elapsed_since "$section_began")"
}

skip() {
    if [[ ${CI:-} == true ]]; then
        printf 'error: %s would be skipped (%s), and CI skips nothing\n' "$1" "$2" >&2
        exit 1
    fi
    printf '!!! SKIPPED: %s (%s)\n' "$1" "$2"
    skipped+=("$1")
}

need() {
    local program=$1 package=$2 why=$3
    command -v "$program" >/dev/null && return 0
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        printf 'installing %s: %s\n' "$package" "$why"
        { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" ||
            { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package"; }; } >/dev/null
        command -v "$program" >/dev/null && return 0
    fi
    skip "$program" "$why; it is in the package $package"
    return 1
}

elapsed_since() {
    local seconds=$((SECONDS - $1))
    printf '%dm%02ds' $((seconds / 60)) $((seconds % 60))
}

close() {
    local code=$?
    if ((code != 0)); then
        printf '\n*** %s: FAILED in "%s" after %s (exit code %d)\n' \
            "$script" "$section_title" "$(elapsed_since "$section_began")" "$code" >&2
        return
    fi
    printf '\n*** %s: all %d sections ok in %s' "$script" "$sections_done" "$(elapsed_since 0)"
    if ((${#skipped[@]} > 0)); then
        printf ', SKIPPED: %s' "${skipped[*]}"
    fi
    printf '\n'
}
