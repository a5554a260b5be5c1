/* What the HTML page knows: one JSON object, made for being small rather than for being read.
 *
 *     strings[]   every text once; others name it by its number
 *     frames      columns: function, short name, file, line, module, flags
 *     nodes       columns: how far back the caller is, frame, calls merged        (view/flame.h)
 *     rows        what was allocated at a node itself, a flat table with `columns` for its titles
 *     sites       the rows of the report, as in the contract
 *     timeline, births, lifetimes, sources, totals, health, notes
 *
 * Bytes and objects of `rows` are whole numbers in units of 1/scale, so that the page's sums are exact. */
#ifndef MALLOSCOPE_FORMAT_PAGE_DATA_H
#define MALLOSCOPE_FORMAT_PAGE_DATA_H

#include "format/format.h"
#include "format/json.h"

int page_data_write(
    const struct format_input *input, const struct page_options *options, FILE *out, struct problem *problem);

#endif
