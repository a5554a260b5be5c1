_malloscope_recorded() {
    local -a processes=(${(f)"$(_call_program processes ${(q)malloscope_tool} completions --processes)"})
    processes=(${processes/$'\t'/:})
    _describe -t processes process processes
}

_malloscope_processes() {
    local -a processes
    local folder
    for folder in /proc/<->(N); do
        { processes+=(${folder:t}:$(<$folder/comm)) } 2>/dev/null # it may have ended meanwhile
    done
    _describe -t processes process processes
}

_malloscope_sources() {
    _alternative 'recordings:recording:_files -g "*.(mscope|mscar)"' 'processes:process:_malloscope_recorded'
}

_malloscope_programs() {
    _alternative 'commands:program:_command_names -e' 'files:program:_files -g "*(-*)"'
}

_malloscope() {
    local curcontext=$curcontext context state state_descr line malloscope_tool=${~words[1]}
    local -A opt_args
    _arguments -C \
        '(- *)'{-h,--help}'[show the commands]' \
        '(- *)'{-V,--version}'[print the version]' \
        '1:command:_malloscope_commands' \
        '*::argument:->argument'
    if [[ $state == argument ]] && (( $+functions[_malloscope_$words[1]] )); then
        curcontext=${curcontext%:*:*}:malloscope-$words[1]:
        _malloscope_$words[1]
    fi
}

# zsh reads this file from $fpath as the body of the function _malloscope. Sourced, it has to register the function.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _malloscope "$@"
else
    compdef _malloscope malloscope
fi
