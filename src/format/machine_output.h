/* The output that scripts rely on: names and meaning of the fields never change; fields may be added.
 *
 * `report --json`, `report --csv`, `stats --json` and the formats json and csv write totals, health and rows by
 * these functions. Estimates are written with all their digits, exact figures as whole numbers. A field `…_error`
 * is half the width of the 95 % interval. */
#ifndef MALLOSCOPE_FORMAT_MACHINE_OUTPUT_H
#define MALLOSCOPE_FORMAT_MACHINE_OUTPUT_H

#include "format/json.h"
#include "model/model.h"
#include "view/view.h"

#include <stdio.h>

const char *machine_output_state_name(enum process_state state);

/* Each writes one object. The caller writes a key before it, if it needs one. */
void machine_output_write_totals(struct json *json, const struct model *model);
void machine_output_write_health(struct json *json, const struct model *model);
void machine_output_write_row(struct json *json, const struct view_row *row);
/* An array: name, rate and figures of every heap. */
void machine_output_write_heaps(struct json *json, const struct model *model);

/* Writes whether the figures rest on few samples (FEW_SAMPLES), as fields of the object that is open: all of them, and
 * the live ones. Exact figures never do. */
void machine_output_write_trust(struct json *json, const struct figures *figures, bool exact);

/* Writes the figures as fields of the object that is open. */
void machine_output_write_figures(struct json *json, const struct figures *figures);

/* For tables with many rows: the first writes an array of the fields' names, the second their values in that order,
 * into the array that is open. */
void machine_output_write_figure_names(struct json *json);
void machine_output_write_figure_values(struct json *json, const struct figures *figures);

/* CSV as in RFC 4180, but with "\n" as the end of a line. What is not known is an empty field. Rows of threads have
 * a column `thread` in front; of the others only few are known. The last column, `recorder_bytes`, is the same in every
 * row: what the recorder takes itself. */
void machine_output_write_csv_header(FILE *out, bool threads);
void machine_output_write_csv_row(
    FILE *out, const struct view_row *row, bool threads, const struct model *model);

#endif
