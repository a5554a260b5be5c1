#include "api_scopes.c"
