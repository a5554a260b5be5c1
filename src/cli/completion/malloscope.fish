# True if no command is typed yet.
function __malloscope_is_bare
    test (count (commandline -opc)) -eq 1
end

# True if that command is typed.
function __malloscope_is_named
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end

# The words that are typed of the program that 'malloscope run' is to run, and of its arguments.
function __malloscope_program_words
    set -l words (commandline -opc)
    argparse -s $__malloscope_run_grammar -- $words[3..] 2>/dev/null; or return
    test (count $argv) -gt 0; and printf '%s\n' $argv
end

# True if that command is typed and its options can stand here. Those of 'run' end at the program.
function __malloscope_is
    __malloscope_is_named $argv[1]; or return
    test $argv[1] != run; or test -z "$(__malloscope_program_words)"
end

function __malloscope_program
    set -l program (__malloscope_program_words)
    set -l line (string escape -- $program) (commandline -ct)
    string match -q -- '-*' "$line"; or complete --do-complete="$line"
end

function __malloscope_sources
    set -l typed (string unescape -- (commandline -ct))
    set -l found $typed*.mscope $typed*.mscar $typed*/
    printf '%s\n' $found
    string match -qr '^\d*$' -- "$typed"; or return
    set -l tool (commandline -opc)[1]
    $tool completions --processes 2>/dev/null
end
