#include "api_absent.c"
