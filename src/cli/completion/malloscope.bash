# _malloscope_value OPTION: sets `value` to the kind of value that the table says the option takes, empty for none.
_malloscope_value() {
    local entry
    value=
    for entry in $options; do
        if [[ $entry == "$1="* ]]; then
            value=${entry#*=}
            return
        fi
    done
}

# _malloscope_offer_words WORD...: offers those words that begin with what is typed.
_malloscope_offer_words() {
    mapfile -t COMPREPLY < <(compgen -W "$*" -- "$current")
}

_malloscope_offer_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$@" -- "$current")
}

_malloscope_offer_sources() {
    local file processes tool=${COMP_WORDS[0]}
    _malloscope_offer_files -f
    local files=("${COMPREPLY[@]}")
    COMPREPLY=()
    for file in "${files[@]}"; do
        if [[ $file == *.mscope || $file == *.mscar || -d ${file/#\~/$HOME} ]]; then COMPREPLY+=("$file"); fi
    done
    [[ $current == *[!0-9]* ]] && return
    processes=$("${tool/#\~/$HOME}" completions --processes 2>/dev/null | cut -f 1)
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$processes" -- "$current")
}

# _malloscope_offer KIND: offers what fits that kind of value or argument.
_malloscope_offer() {
    case $1 in
    file) _malloscope_offer_files -f ;;
    folder) _malloscope_offer_files -d ;;
    word) ;;
    source) _malloscope_offer_sources ;;
    process) _malloscope_offer_words "$(cd /proc && echo [0-9]*)" ;;
    program) _malloscope_offer_files -c ;;
    \[*) _malloscope_offer_words "$(tr '[],' '   ' <<<"$1")" ;;
    *) _malloscope_offer_words "$1" ;;
    esac
}

# _malloscope_program INDEX: from that word on, the line belongs to another program, which completes it.
_malloscope_program() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    else
        _malloscope_offer file
    fi
}

# _malloscope_letters LETTERS: sets `value` as _malloscope_value does if the last letter is an option that takes one.
_malloscope_letters() {
    local i
    for ((i = 0; i < ${#1}; i++)); do
        _malloscope_value "-${1:i:1}"
        [[ -n $value ]] && break
    done
    ((i == ${#1} - 1)) || value=
}

_malloscope() {
    local current=${COMP_WORDS[COMP_CWORD]} takes options value= word ended= i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _malloscope_offer_words "$_malloscope_commands --help --version"
        return
    fi
    _malloscope_table "${COMP_WORDS[1]}" || return
    for ((i = 2; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $value ]]; then
            [[ $word == = ]] || value= # bash splits --sort=peak in three
        elif [[ -n $ended || $word != -?* ]]; then
            [[ $takes == program ]] && { _malloscope_program "$i"; return; }
        elif [[ $word == -- ]]; then
            ended=1
        elif [[ $word == --* ]]; then
            _malloscope_value "$word"
        else
            _malloscope_letters "${word#-}"
        fi
    done
    if [[ -n $value ]]; then
        [[ $current == = ]] && current=
        _malloscope_offer "$value"
    elif [[ -z $ended && $current == -* ]]; then
        _malloscope_offer_words "$(printf '%s\n' $options | cut -d = -f 1)"
    else
        _malloscope_offer "$takes"
    fi
}

complete -F _malloscope malloscope
