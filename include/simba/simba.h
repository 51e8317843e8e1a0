#pragma once

// All a user needs; the headers behind it can be taken one by one.
#include "simba/async.h"
#include "simba/client.h"
#include "simba/connect.h"
#include "simba/contend_period.h"
#include "simba/contend_service.h"
#include "simba/contender_id.h"
#include "simba/error.h"
#include "simba/event.h"
#include "simba/locker.h"
#include "simba/log.h"
#include "simba/mutex_owner.h"
#include "simba/mutex_state.h"
#include "simba/options.h"
#include "simba/scheduler.h"
#include "simba/term.h"
#include "simba/time.h"
