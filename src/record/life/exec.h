#ifndef MALLOSCOPE_RECORD_LIFE_EXEC_H
#define MALLOSCOPE_RECORD_LIFE_EXEC_H

struct options;

/* To be called once, when the options are known and before the program runs. With --no-follow the recorder is taken out
 * of this process's environment: no other program gets it, however it is started. `env` and shells are not the program
 * that is meant, but the way to it ("#!/usr/bin/env python3", wrapper scripts). They keep the environment for what the
 * process becomes; what they start as a child gets it without the recorder. */
void exec_begin(const struct options *options);

#endif
