/* The data of the HTML page of one recording: one JSON object, made to be small.
 *
 *     strings[]   every text once; other parts name it by its number
 *     frames      six numbers for each frame: function, short name, file, line, module, flags
 *     nodes       three numbers for each node: distance to its caller, frame, calls merged        (view/flame.h)
 *     rows        what was allocated at a node itself: a flat table, whose titles are `columns`
 *     sites       the rows of the report, with the fields of machine_output.h
 *     timeline, births, lifetimes, sources, totals, health, notes
 *
 * Bytes and objects in `rows` are whole numbers in units of 1 / byte_scale and 1 / object_scale, so that the sums
 * that the page makes are exact. */
#ifndef MALLOSCOPE_FORMAT_PAGE_DATA_H
#define MALLOSCOPE_FORMAT_PAGE_DATA_H

#include "format/format.h"
#include "format/json.h"

int page_data_write(
    const struct format_input *input, const struct page_options *options, FILE *out, struct problem *problem);

#endif
