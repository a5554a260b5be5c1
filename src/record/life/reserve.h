/* Space for what is recorded after files cannot be opened any more. */
#ifndef MALLOSCOPE_RECORD_LIFE_RESERVE_H
#define MALLOSCOPE_RECORD_LIFE_RESERVE_H

/* While files can still be opened: space ahead, so that recording goes on without. */
void reserve_space(void);

#endif
