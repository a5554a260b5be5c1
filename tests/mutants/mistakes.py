"""Mistakes that somebody could make in this code, one or two for each folder of src: (file, right, wrong).

`right` stands exactly once in the file. They were chosen by what they break, without looking at which test would
notice: figures, estimates, other people's programs, names, tables, exports, verdicts, options.
"""

MISTAKES = [
    # the sampler and the tables of the recording
    ("core/sampler.c", "-natural_log(u) * (double)rate", "-natural_log(u) * (double)rate * 1.1"),
    ("core/sampler.c", "(double)size / p * BYTE_ONE", "(double)size * BYTE_ONE"),
    ("core/events.c", "save_peak(recording->header, stack, &stack->alloc_epoch);\n    settle", "settle"),
    ("core/events.c", "counter_store(&stack->peak_objects, objects - counter_load(&stack->freed_objects))",
     "counter_store(&stack->peak_objects, objects)"),
    ("core/heap_size.c", "live - slack : 0;", "live : 0;"),
    ("core/address_index.c", "lower_overflow(segment, home, passed);\n            return slot;", "return slot;"),
    ("core/live_table.c", "thread->spare_count--;", ""),
    ("core/timeline.c", "events ? last : first_last", "last"),
    # taking samples in the program
    ("record/intercept/hooks.c", "return allocate(CALLOC, 0, total, at);", "return allocate(MALLOC, 0, total, at);"),
    ("record/intercept/hooks.c", "recorder_refund(size);\n    else if (distance)", ";\n    else if (distance)"),
    ("record/intercept/hooks.c", "alignment <= PAGE_MASK;", "true;"),
    ("record/life/fork.c", "walk_cache_free(); /* it holds", "/* it holds"),
    ("record/life/fork.c", "stack->peak_bytes = stack->inherited_bytes = stack->alloc_bytes;",
     "stack->peak_bytes = stack->alloc_bytes;"),
    ("record/api/scopes.c", "if (scopes && scope < scopes->depth) scopes->depth = scope;",
     "if (scopes && scope < scopes->depth) scopes->depth--;"),
    ("record/python/python_lines.c", "line += kind - ENTRY_ONE_LINE;", "line += 1;"),
    ("record/dump/dump_triggers.c", "writer == self || ", ""),
    # stacks
    ("unwind/frame_step.h", "frame_step_restore(frame, BASE_FP, anchor, rule_saved_fp(rule), read, walk);", ""),
    ("unwind/expression.c", "push_number(evaluation, evaluation->pc + offset);",
     "push_number(evaluation, evaluation->pc);"),
    # from the file to an answer
    ("model/load_recording.c", "if (module->deleted) module->path[length - suffix] = '\\0';", ""),
    ("model/load_recording.c", "(double)header->peak_time / 1e9", "(double)header->peak_time / 1e6"),
    ("symbol/symbol_table.c", "if (address >= section_end) continue;", ""),
    ("symbol/demangle.c", "if (demangled) cut_rust_hash(demangled);", ""),
    ("view/rows.c", "name_key_equal(a->heap, b->heap) && name_key_equal(a->type, b->type)",
     "name_key_equal(a->type, b->type)"),
    ("view/diff.c", "2 * fmax(all / change, 1)", "0 * fmax(all / change, 1)"),
    ("view/leaks.c", "if (only_late && !scene->has_exited) return LEAK_IN_USE;", ""),
    ("view/suppressions.c", "suppressions_match_text(pattern, symbol->file) ||\n           ", ""),
    ("base/confidence_interval.h", "if (added > variance) added = variance;", "added = 0;"),
    ("format/pprof.c", "line->line = symbol->line;", "line->line = symbol->function_line;"),
    ("format/csv.c", "sort_for(input->value)", "SORT_LIVE"),
    # the command
    ("cli/run/gates.c", "fmax(value - error, measured->seen) > (double)limit", "value - error > (double)limit"),
    ("cli/terminal/units.c", "if (value > UINT64_MAX >> shift) return false;", ""),
    ("cli/top/top_state.c", "process->duration - (double)figures->oldest / 1e9", "(double)figures->oldest / 1e9"),
    # from outside
    ("attach/bpf/plan_candidates.c", "draft->candidates[i].state = STATE_ALIAS;", ";"),
    ("attach/bpf/sampling_interval.h", "f <<= 1;\n        k++;", "f <<= 1;"),
    ("attach/remote/remote_unwind.c", "uint64_t instruction = pc - 1 + walk->frame.interrupted;",
     "uint64_t instruction = pc;"),
]
