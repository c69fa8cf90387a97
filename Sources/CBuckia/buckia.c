// The functions of buckia.h are written in Swift, in the target BuckiaC. SwiftPM wants a source file of a C target.
#include "buckia.h"
