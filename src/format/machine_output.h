/* The machine output that scripts rely on: names and meaning of the fields never change, fields may be added.
 *
 * `report --json`, `report --csv`, `stats --json` and the formats json and csv all write their totals, health
 * and rows through these functions. Estimates are written with all their digits, exact figures as whole
 * numbers; `…_error` is half the width of the 95 % interval. */
#ifndef MALLOSCOPE_FORMAT_MACHINE_OUTPUT_H
#define MALLOSCOPE_FORMAT_MACHINE_OUTPUT_H

#include "format/json.h"
#include "model/model.h"
#include "view/view.h"

#include <stdio.h>

const char *machine_output_state_name(enum process_state state);

/* Each writes one object; a key before it is the caller's. */
void machine_output_write_totals(struct json *json, const struct model *model);
void machine_output_write_health(struct json *json, const struct model *model);
void machine_output_write_row(struct json *json, const struct view_row *row);
/* An array: name, rate and figures of every heap. */
void machine_output_write_heaps(struct json *json, const struct model *model);

/* The figures alone, as fields of the object that is open. */
void machine_output_write_figures(struct json *json, const struct figures *figures);

/* For tables with many rows: the names as an array, and the values in their order, into the array that is
 * open. */
void machine_output_write_figure_names(struct json *json);
void machine_output_write_figure_values(struct json *json, const struct figures *figures);

/* RFC 4180 with "\n" at the end of a line; what is not known is an empty field. The rows of `threads` have a
 * column `thread` before the others, of which only few are known. */
void machine_output_write_csv_header(FILE *out, bool threads);
void machine_output_write_csv_row(FILE *out, const struct view_row *row, bool threads);

#endif
