/* The page without its data, which web/embed.py makes from web/: what comes before the data, and what comes after. */
#ifndef MALLOSCOPE_FORMAT_PAGE_TEMPLATE_H
#define MALLOSCOPE_FORMAT_PAGE_TEMPLATE_H

#include <stddef.h>

extern const char page_before_data[], page_after_data[];
extern const size_t page_before_data_size, page_after_data_size;

#endif
