/* The format `csv`: the rows of the report by site, as `report --csv` writes them. */
#include "format/machine_output.h"
#include "format/writers.h"

static enum view_sort sort_for(enum value_kind value) {
    switch (value) {
    case VALUE_LIVE:
    case VALUE_OBJECTS:
        return SORT_LIVE;
    case VALUE_PEAK:
        return SORT_PEAK;
    case VALUE_TOTAL:
        return SORT_TOTAL;
    }
    return SORT_LIVE;
}

int csv_write(const struct format_input *input, FILE *out, struct problem *problem) {
    struct view_rows rows;
    int r =
        view_rows_make(input->model, input->resolver, BY_SITE, sort_for(input->value), NULL, &rows, problem);
    if (r < 0) return r;

    machine_output_write_csv_header(out, false);
    for (size_t i = 0; i < rows.count; i++)
        machine_output_write_csv_row(out, &rows.rows[i], false, input->model);
    view_rows_free(&rows);
    return 0;
}
