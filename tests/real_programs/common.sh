# What the scripts of program_list.py share. Sourced by bash before each of them.

# wait_for COMMAND...: repeats it until it succeeds, for two minutes at most.
wait_for() {
    local end=$((SECONDS + 120))
    until "$@" > /dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { echo "not ready in time: $*"; return 1; }
        sleep 0.1
    done
}
