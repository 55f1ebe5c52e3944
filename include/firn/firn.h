/*
 * firn/firn.h - all of libfirn at once. Sealed IDs are in a library of their own: firn/seal.h.
 */
#ifndef FIRN_FIRN_H
#define FIRN_FIRN_H

#include "firn/clock.h"
#include "firn/cuid2.h"
#include "firn/dated.h"
#include "firn/error.h"
#include "firn/gen.h"
#include "firn/ksuid.h"
#include "firn/layout.h"
#include "firn/mint.h"
#include "firn/nanoid.h"
#include "firn/now.h"
#include "firn/objectid.h"
#include "firn/prefixed.h"
#include "firn/random.h"
#include "firn/read.h"
#include "firn/stamp17.h"
#include "firn/text.h"
#include "firn/ticket.h"
#include "firn/tsid.h"
#include "firn/typeid.h"
#include "firn/ulid.h"
#include "firn/uuid.h"
#include "firn/version.h"
#include "firn/xid.h"

#endif
