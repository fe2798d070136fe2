/*
 * A stand-in for libnvidia-ml.so.1, so that the NVML port is tested through the real binding and
 * the real ctypes path on a machine without a GPU.
 *
 * What it answers is written in the file that NVML_SHIM_SCENARIO names, one "key value" a line:
 *
 *   *.count 2                   a fact of the driver; for a physical device also the fallback
 *   0.power_mw 412345           device 0
 *   0.mig1.uuid MIG-...         the second MIG instance of device 0; never falls back
 *   0.energy_mj !15             the call returns this nvmlReturn_t instead of a value
 *   0.ALL !15                   every call on device 0 does
 *   0.power_mw.sleep_ms 400     the call hangs that long first
 *   0.ALL.sleep_ms 400          every call on device 0 does
 *
 * Calls that are about no device hang by *.init.sleep_ms, *.shutdown.sleep_ms, *.wait.sleep_ms,
 * *.event_set.sleep_ms, *.gpm_alloc.sleep_ms, *.gpm_metrics.sleep_ms.
 *
 * A key that is absent is NOT_SUPPORTED. The file is looked at in each call, so a test may change
 * the machine while it is being watched. Drivers that lack a symbol are made at compile time:
 * -DNO_MEMORY_V2, -DNO_EVENT_REASONS, -DNO_TEMPERATURE_V, -DNO_PROCESSES_V3, -DNO_GPM; and one to come
 * that has dropped -DNO_PROCESSES_V2.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef int R; /* nvmlReturn_t */

enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, TIMEOUT = 10, VERSION_MISMATCH = 25
};

#define TEXT 4096 /* a scan below names one less */
#define DEVICES 16
#define INSTANCES 8
#define ROWS 128
#define NONE_32 (~0u)
#define NONE_64 (~0ull)

/* A handle: the binding only passes it around. The prefix is what its keys start with. */
struct device { char prefix[24]; u32 parent, slot; int is_mig; };
static struct device physical[DEVICES], mig[DEVICES][INSTANCES];

static int init_count = 0;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- counts for the tests: how often a key was asked for, what is still allocated ---- */

#define ASKED 16384
static struct { char key[160]; u32 count; } asked[ASKED];
static int samples_alive = 0, event_sets_alive = 0;
static u32 races = 0;
static int sets_made = 0;
static u64 registered = 0; /* the events that were asked for last */

static u32 hash(const char *text) {
    u32 h = 2166136261u;
    while (*text) h = (h ^ (unsigned char)*text++) * 16777619u;
    return h;
}

/* Where a key is counted, or the empty place where it would be. */
static u32 place_of(const char *key) {
    u32 i = hash(key) % ASKED;
    while (asked[i].key[0] && strcmp(asked[i].key, key)) i = (i + 1) % ASKED;
    return i;
}

static void count_key(const char *key) {
    pthread_mutex_lock(&mutex);
    u32 i = place_of(key);
    if (!asked[i].key[0]) snprintf(asked[i].key, sizeof asked[i].key, "%s", key);
    asked[i].count++;
    pthread_mutex_unlock(&mutex);
}

u32 shim_calls(const char *key) {
    return asked[place_of(key)].count;
}
void shim_reset(void) {
    memset(asked, 0, sizeof asked);
    init_count = samples_alive = event_sets_alive = 0;
    races = 0, sets_made = 0;
}
u64 shim_registered(void) { return registered; }
int shim_samples_alive(void) { return samples_alive; }
int shim_event_sets_alive(void) { return event_sets_alive; }

/* ---- the scenario: parsed again only when the file was replaced ---- */

static struct { char *text, **keys, **values; u32 size; char path[TEXT]; struct stat was; int is_old, is_frozen; } scenario;

void shim_changed(void) { scenario.is_old = 1; } /* a file may be replaced faster than its times tell */
void shim_freeze(int on) { scenario.is_frozen = on; } /* do not even look: for measurements */
__attribute__((constructor)) static void begin(void) {
    scenario.is_frozen = getenv("NVML_SHIM_FROZEN") != NULL; /* read once, at the first call */
    scenario.is_old = 1;
}

static void store(char *key, char *value) {
    u32 i = hash(key) % scenario.size;
    while (scenario.keys[i] && strcmp(scenario.keys[i], key)) i = (i + 1) % scenario.size;
    scenario.keys[i] = key, scenario.values[i] = value; /* the last of two counts */
}

static int parse(const char *path) {
    FILE *file = fopen(path, "r");
    u32 lines = 1;
    if (!file) return 0;
    free(scenario.text), free(scenario.keys), free(scenario.values);
    scenario.text = calloc(1, (size_t)scenario.was.st_size + 1);
    size_t got = fread(scenario.text, 1, (size_t)scenario.was.st_size, file);
    fclose(file);
    for (size_t i = 0; i < got; i++) lines += scenario.text[i] == '\n';
    scenario.size = 2 * lines;
    scenario.keys = calloc(scenario.size, sizeof(char *));
    scenario.values = calloc(scenario.size, sizeof(char *));
    char *rest = scenario.text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *value = strchr(line, ' ');
        if (line[0] == '#' || !value || strlen(line) >= TEXT) continue;
        *value++ = 0;
        store(line, value);
    }
    snprintf(scenario.path, sizeof scenario.path, "%s", path);
    scenario.is_old = 0;
    return 1;
}

static int is_current(const char *path, const struct stat *now) {
    const struct stat *was = &scenario.was;
    return !scenario.is_old && !strcmp(scenario.path, path) && now->st_ino == was->st_ino
        && now->st_size == was->st_size && now->st_mtim.tv_nsec == was->st_mtim.tv_nsec
        && now->st_mtim.tv_sec == was->st_mtim.tv_sec;
}

static int lookup(const char *wanted, char *out) {
    const char *path = getenv("NVML_SHIM_SCENARIO");
    struct stat now;
    int found = 0;
    int is_looked_at = !scenario.is_frozen || scenario.is_old;
    if (!path || (is_looked_at && stat(path, &now))) return 0;
    pthread_mutex_lock(&mutex);
    if (is_looked_at && !is_current(path, &now)) {
        scenario.was = now;
        if (!parse(path)) scenario.size = 0;
    }
    if (scenario.size) {
        u32 i = hash(wanted) % scenario.size;
        while (scenario.keys[i] && strcmp(scenario.keys[i], wanted)) i = (i + 1) % scenario.size;
        if (scenario.keys[i]) strcpy(out, scenario.values[i]), found = 1;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

static void hang(const char *call) {
    char key[64], value[TEXT];
    snprintf(key, sizeof key, "*.%s.sleep_ms", call);
    if (lookup(key, value)) usleep(1000 * (useconds_t)atoi(value));
}

static int get(const struct device *d, const char *key, char *out) {
    char full[160];
    snprintf(full, sizeof full, "%s.%s", d ? d->prefix : "*", key);
    if (lookup(full, out)) return 1;
    if (!d || d->is_mig) return 0;
    snprintf(full, sizeof full, "*.%s", key);
    return lookup(full, out);
}

/* What every call does first: count it, hang if told to, then the value or the error code. */
static R answer(const struct device *d, const char *key, char *out) {
    char full[160];
    if (!init_count) return UNINITIALIZED;
    snprintf(full, sizeof full, "%s.%s", d ? d->prefix : "*", key);
    count_key(full);
    snprintf(full, sizeof full, "%s.sleep_ms", key);
    if (get(d, full, out) || (d && get(d, "ALL.sleep_ms", out))) usleep(1000 * (useconds_t)atoi(out));
    if (d && d->is_mig && !get(d, "uuid", out)) return INVALID_ARGUMENT; /* the instance is no more */
    if (d && get(d, "ALL", out) && out[0] == '!') return atoi(out + 1);
    if (!get(d, key, out)) return NOT_SUPPORTED;
    return out[0] == '!' ? atoi(out + 1) : OK;
}

static R number(const struct device *d, const char *key, u64 *value) {
    char text[TEXT];
    R r = answer(d, key, text);
    if (r == OK) *value = strtoull(text, NULL, 0); /* "-5" wraps as it does in the driver */
    return r;
}

static R number32(const struct device *d, const char *key, u32 *value) {
    u64 wide;
    R r = number(d, key, &wide);
    if (r == OK) *value = (u32)wide;
    return r;
}

static R text(const struct device *d, const char *key, char *out, u32 size) {
    char value[TEXT];
    R r = answer(d, key, value);
    if (r != OK) return r;
    if (strlen(value) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, value);
    return OK;
}

#define GET_32(symbol, key) R symbol(struct device *d, u32 *out) { return number32(d, key, out); }
#define GET_64(symbol, key) R symbol(struct device *d, u64 *out) { return number(d, key, out); }
#define GET_TEXT(symbol, key) R symbol(struct device *d, char *out, u32 size) { return text(d, key, out, size); }
/* Two values under one key each; the second is 0 when the scenario does not have it. */
#define GET_PAIR(symbol, first, second) \
    R symbol(struct device *d, u32 *a, u32 *b) { \
        R r = number32(d, first, a); \
        if (r == OK && number32(d, second, b) != OK) *b = 0; \
        return r; \
    }
/* A value that depends on an argument: its key ends in that number. */
#define GET_KIND_32(symbol, key) \
    R symbol(struct device *d, u32 kind, u32 *out) { \
        char full[64]; \
        snprintf(full, sizeof full, key "%u", kind); \
        return number32(d, full, out); \
    }

/* ---- life cycle and system ---- */

R nvmlInitWithFlags(u32 flags) {
    char value[TEXT];
    (void)flags;
    hang("init");
    if (!getenv("NVML_SHIM_SCENARIO")) return 9; /* no machine described: no driver is loaded */
    if (lookup("*.init", value) && value[0] == '!') return atoi(value + 1);
    init_count++;
    return OK;
}
R nvmlShutdown(void) {
    hang("shutdown");
    if (!init_count) return UNINITIALIZED;
    init_count--;
    return OK;
}
const char *nvmlErrorString(R r) { return r == OK ? "Success" : "An error"; }
R nvmlSystemGetDriverVersion(char *out, u32 size) { return text(NULL, "driver", out, size); }
R nvmlSystemGetNVMLVersion(char *out, u32 size) { return text(NULL, "nvml", out, size); }
R nvmlSystemGetCudaDriverVersion_v2(int *out) { return number32(NULL, "cuda", (u32 *)out); }

/* ---- finding devices ---- */

R nvmlDeviceGetCount_v2(u32 *out) { return number32(NULL, "count", out); }

R nvmlDeviceGetHandleByIndex_v2(u32 index, struct device **out) {
    u32 count;
    char value[TEXT];
    R r = number32(NULL, "count", &count);
    if (r != OK) return r;
    if (index >= count || index >= DEVICES) return INVALID_ARGUMENT;
    struct device *d = &physical[index];
    snprintf(d->prefix, sizeof d->prefix, "%u", index);
    d->slot = d->parent = index;
    r = answer(d, "handle", value);
    /* Only a scenario that says so fails the lookup: ALL is about the calls that follow. */
    if (r != OK && get(d, "handle", value) && value[0] == '!') return atoi(value + 1);
    *out = d;
    return OK;
}

R nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, u32 index, struct device **out) {
    char value[TEXT];
    if (d->is_mig || index >= INSTANCES) return INVALID_ARGUMENT;
    struct device *m = &mig[d->slot][index];
    snprintf(m->prefix, sizeof m->prefix, "%u.mig%u", d->slot, index);
    m->is_mig = 1, m->parent = d->slot, m->slot = index;
    if (get(d, "ALL", value) && value[0] == '!') return atoi(value + 1);
    if (!get(m, "uuid", value)) return NOT_FOUND;
    *out = m;
    return OK;
}

R nvmlDeviceGetHandleByUUID(const char *uuid, struct device **out) {
    char value[TEXT];
    u32 count;
    R r = number32(NULL, "count", &count);
    if (r != OK) return r;
    for (u32 i = 0; i < count; i++) {
        if (nvmlDeviceGetHandleByIndex_v2(i, out) != OK) continue;
        if (get(*out, "uuid", value) && !strcmp(value, uuid)) return OK;
        struct device *parent = *out;
        for (u32 k = 0; k < INSTANCES; k++)
            if (nvmlDeviceGetMigDeviceHandleByIndex(parent, k, out) == OK && get(*out, "uuid", value)
                && !strcmp(value, uuid))
                return OK;
    }
    return NOT_FOUND;
}

GET_TEXT(nvmlDeviceGetUUID, "uuid")
GET_TEXT(nvmlDeviceGetName, "name")
GET_TEXT(nvmlDeviceGetSerial, "serial")
GET_TEXT(nvmlDeviceGetVbiosVersion, "vbios")
GET_32(nvmlDeviceGetMinorNumber, "minor")
GET_32(nvmlDeviceGetArchitecture, "architecture")
GET_32(nvmlDeviceGetBrand, "brand")
GET_32(nvmlDeviceGetModuleId, "module")
GET_32(nvmlDeviceGetNumGpuCores, "cores")
GET_32(nvmlDeviceGetPersistenceMode, "persistence")
GET_32(nvmlDeviceGetComputeMode, "compute_mode")
GET_32(nvmlDeviceGetVirtualizationMode, "virtualization")

R nvmlDeviceGetIndex(struct device *d, u32 *out) {
    *out = d->slot;
    return init_count ? OK : UNINITIALIZED;
}

struct pci { char bus_id_legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
_Static_assert(sizeof(struct pci) == 68, "nvmlPciInfo_t");
R nvmlDeviceGetPciInfo_v3(struct device *d, struct pci *out) {
    char value[TEXT];
    R r = answer(d, "pci", value);
    if (r != OK) return r;
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "%.31s", value);
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%.15s", strlen(value) > 4 ? value + 4 : value);
    sscanf(value, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    return OK;
}

/* ---- readings ---- */

static GET_PAIR(utilization_pair, "util_gpu", "util_mem")
R nvmlDeviceGetUtilizationRates(struct device *d, u32 *out) {
    return utilization_pair(d, out, out + 1);
}
GET_PAIR(nvmlDeviceGetEncoderUtilization, "util_encoder", "util_encoder_us")
GET_PAIR(nvmlDeviceGetDecoderUtilization, "util_decoder", "util_decoder_us")
GET_PAIR(nvmlDeviceGetJpgUtilization, "util_jpg", "util_jpg_us")
GET_PAIR(nvmlDeviceGetOfaUtilization, "util_ofa", "util_ofa_us")

struct memory { u64 total, free, used; };
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
_Static_assert(sizeof(struct memory_v2) == 40, "nvmlMemory_v2_t");

static R memory(struct device *d, struct memory_v2 *m) {
    R r = number(d, "mem_total", &m->total);
    if (r == OK) r = number(d, "mem_used", &m->used);
    if (r == OK && number(d, "mem_reserved", &m->reserved) != OK) m->reserved = 0;
    if (r == OK) m->free = m->total - m->used - m->reserved;
    return r;
}
/* The first version counts what the driver reserves as used. */
R nvmlDeviceGetMemoryInfo(struct device *d, struct memory *out) {
    struct memory_v2 m;
    R r = memory(d, &m);
    if (r == OK) *out = (struct memory){m.total, m.free, m.used == NONE_64 ? NONE_64 : m.used + m.reserved};
    return r;
}
#ifndef NO_MEMORY_V2
R nvmlDeviceGetMemoryInfo_v2(struct device *d, struct memory_v2 *out) {
    return out->version == 0x02000028 ? memory(d, out) : VERSION_MISMATCH;
}
#endif

GET_32(nvmlDeviceGetPowerUsage, "power_mw")
GET_32(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw")
GET_32(nvmlDeviceGetPowerManagementLimit, "power_set_mw")
GET_32(nvmlDeviceGetPowerManagementDefaultLimit, "power_default_mw")
GET_64(nvmlDeviceGetTotalEnergyConsumption, "energy_mj")
GET_KIND_32(nvmlDeviceGetClockInfo, "clock")
GET_KIND_32(nvmlDeviceGetMaxClockInfo, "max_clock")
GET_32(nvmlDeviceGetPerformanceState, "pstate")
#ifndef NO_EVENT_REASONS
GET_64(nvmlDeviceGetCurrentClocksEventReasons, "event_reasons")
GET_64(nvmlDeviceGetSupportedClocksEventReasons, "supported_reasons")
#endif
GET_64(nvmlDeviceGetCurrentClocksThrottleReasons, "throttle_reasons")

R nvmlDeviceGetTemperature(struct device *d, u32 sensor, u32 *out) {
    (void)sensor;
    return number32(d, "temp_c", out);
}
#ifndef NO_TEMPERATURE_V
struct temperature { u32 version, sensor; int celsius; };
R nvmlDeviceGetTemperatureV(struct device *d, struct temperature *out) {
    if (out->version != 0x100000C) return VERSION_MISMATCH;
    return number32(d, "temp_c", (u32 *)&out->celsius);
}
struct margin { u32 version; int celsius; };
R nvmlDeviceGetMarginTemperature(struct device *d, struct margin *out) {
    return number32(d, "margin_c", (u32 *)&out->celsius);
}
#endif
GET_KIND_32(nvmlDeviceGetTemperatureThreshold, "threshold")

/* ---- health ---- */

GET_PAIR(nvmlDeviceGetEccMode, "ecc_mode", "ecc_pending")
R nvmlDeviceGetTotalEccErrors(struct device *d, u32 type, u32 counter, u64 *out) {
    char key[64];
    snprintf(key, sizeof key, "ecc_%s_%s", type ? "uncorrected" : "corrected", counter ? "aggregate" : "volatile");
    return number(d, key, out);
}
R nvmlDeviceGetRemappedRows(struct device *d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
    char value[TEXT];
    R r = answer(d, "remapped", value); /* four numbers in the order of the call */
    if (r == OK && sscanf(value, "%u %u %u %u", corrected, uncorrected, pending, failed) != 4) r = NOT_SUPPORTED;
    return r;
}
GET_32(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pending")
GET_KIND_32(nvmlDeviceGetPcieThroughput, "pcie_kib")
GET_32(nvmlDeviceGetPcieReplayCounter, "pcie_replays")
GET_32(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
GET_32(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_max_generation")
GET_32(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
GET_32(nvmlDeviceGetMaxPcieLinkWidth, "pcie_max_width")
GET_KIND_32(nvmlDeviceGetNvLinkState, "nvlink_state")

/* fi<id> "<type>:<value>" (types as in nvmlValueType_t), a bare value is an unsigned long long; a
 * scope other than 0 has a key of its own: fi<id>.s<scope>. */
struct field {
    u32 id, scope;
    long long timestamp, latency;
    u32 type;
    R ret;
    union { double d; u32 u; u64 ull; long long ll; int i; unsigned short us; } value;
};
_Static_assert(sizeof(struct field) == 40, "nvmlFieldValue_t");
R nvmlDeviceGetFieldValues(struct device *d, int count, struct field *fields) {
    char key[64], value[TEXT];
    R r = answer(d, "fields", value); /* only an error code or a hang counts here */
    if (r != OK && r != NOT_SUPPORTED) return r;
    for (int i = 0; i < count; i++) {
        struct field *f = &fields[i];
        snprintf(key, sizeof key, f->scope ? "fi%u.s%u" : "fi%u", f->id, f->scope);
        if ((f->ret = answer(d, key, value)) != OK) continue;
        char *colon = strchr(value, ':'), *start = colon ? colon + 1 : value;
        f->type = colon ? (u32)atoi(value) : 3;
        f->value.ull = 0x5a5a5a5a5a5a5a5aull; /* the unused bytes of the union hold anything */
        switch (f->type) {
        case 0: f->value.d = atof(start); break;
        case 1: f->value.u = (u32)strtoull(start, NULL, 0); break;
        case 5: f->value.i = atoi(start); break;
        case 6: f->value.us = (unsigned short)atoi(start); break;
        default: f->value.ull = strtoull(start, NULL, 0);
        }
    }
    return OK;
}

/* ---- processes ---- */

struct process { u32 pid; u64 memory; u32 gpu_instance, compute_instance; };
struct process_535 { struct process first; u64 protected_memory; }; /* what R535's v3 writes */
_Static_assert(sizeof(struct process) == 24 && sizeof(struct process_535) == 32, "nvmlProcessInfo_t");

/* "pid:memory[:gi:ci]" each, memory "-" where the driver does not know it. */
static R processes(struct device *d, const char *key, u32 *count, void *out, u32 stride) {
    char value[TEXT], *rest = value;
    struct process found[ROWS];
    u32 n = 0;
    R r = answer(d, key, value);
    if (r == NOT_SUPPORTED) { *count = 0; return OK; } /* nobody runs here */
    if (r != OK) return r;
    for (char *item; n < ROWS && (item = strtok_r(rest, " ", &rest)); n++) {
        struct process p = {0, NONE_64, NONE_32, NONE_32};
        sscanf(item, "%u:%llu", &p.pid, &p.memory);
        sscanf(item, "%*u:%*[^:]:%u:%u", &p.gpu_instance, &p.compute_instance);
        found[n] = p;
    }
    if (!out || *count < n) { *count = n; return n ? INSUFFICIENT_SIZE : OK; }
    for (u32 i = 0; i < n; i++) {
        struct process_535 row;
        memset(&row, 0, sizeof row); /* no chance in the padding: the wrong stride reads it */
        row.first.pid = found[i].pid, row.first.memory = found[i].memory;
        row.first.gpu_instance = found[i].gpu_instance, row.first.compute_instance = found[i].compute_instance;
        row.protected_memory = 384; /* pynvml#50 showed it where a pid was expected */
        memcpy((char *)out + i * stride, &row, stride);
    }
    *count = n;
    return OK;
}
#ifndef NO_PROCESSES_V3
static u32 stride_v3(void) {
    char value[TEXT];
    return lookup("*.process_bytes", value) ? (u32)atoi(value) : sizeof(struct process);
}
#define PROCESSES_V3(symbol, key) \
    R symbol(struct device *d, u32 *count, void *out) { return processes(d, key, count, out, stride_v3()); }
PROCESSES_V3(nvmlDeviceGetComputeRunningProcesses_v3, "procs")
PROCESSES_V3(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics_procs")
PROCESSES_V3(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps_procs")
#endif
#ifndef NO_PROCESSES_V2
#define PROCESSES_V2(symbol, key) \
    R symbol(struct device *d, u32 *count, void *out) { \
        return processes(d, key, count, out, sizeof(struct process)); \
    }
PROCESSES_V2(nvmlDeviceGetComputeRunningProcesses_v2, "procs")
PROCESSES_V2(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics_procs")
PROCESSES_V2(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps_procs")
#endif

/* putil "pid:microseconds:sm:mem:enc:dec" each; putil_first "!code": the question for the size
 * returns it; putil_race N: the buffer is too small N times, as when processes appear; putil_stale 1:
 * samples from before the timestamp are returned too. */
struct sample { u32 pid; u64 time_us; u32 sm, memory, encoder, decoder; };
_Static_assert(sizeof(struct sample) == 32, "nvmlProcessUtilizationSample_t");
R nvmlDeviceGetProcessUtilization(struct device *d, struct sample *out, u32 *count, u64 since_us) {
    char flag[TEXT], value[TEXT], *rest = value;
    struct sample found[ROWS];
    u32 n = 0;
    if (!out && get(d, "putil_first", value) && value[0] == '!') { *count = 0; return atoi(value + 1); }
    R r = answer(d, "putil", value);
    if (r != OK) return r;
    int stale = get(d, "putil_stale", flag);
    for (char *item; n < ROWS && (item = strtok_r(rest, " ", &rest));) {
        struct sample s = {0, 0, 0, 0, 0, 0};
        sscanf(item, "%u:%llu:%u:%u:%u:%u", &s.pid, &s.time_us, &s.sm, &s.memory, &s.encoder, &s.decoder);
        if (s.time_us > since_us || stale) found[n++] = s;
    }
    if (!n) { *count = 0; return NOT_FOUND; }
    if (!out || *count < n) { *count = n; return INSUFFICIENT_SIZE; }
    if (get(d, "putil_race", value) && races < (u32)atoi(value)) { races++; return INSUFFICIENT_SIZE; }
    races = 0;
    memcpy(out, found, n * sizeof found[0]);
    *count = n;
    return OK;
}

/* ---- MIG ---- */

GET_PAIR(nvmlDeviceGetMigMode, "mig_mode", "mig_pending")
GET_32(nvmlDeviceGetMaxMigDeviceCount, "mig_max")
GET_32(nvmlDeviceGetGpuInstanceId, "gi")
GET_32(nvmlDeviceGetComputeInstanceId, "ci")
R nvmlDeviceIsMigDeviceHandle(struct device *d, u32 *out) {
    *out = (u32)d->is_mig;
    return OK;
}
R nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct device *d, struct device **out) {
    if (!d->is_mig) return INVALID_ARGUMENT;
    *out = &physical[d->parent];
    return OK;
}
struct attributes { u32 sms, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices; u64 memory_mib; };
_Static_assert(sizeof(struct attributes) == 40, "nvmlDeviceAttributes_t");
R nvmlDeviceGetAttributes_v2(struct device *d, struct attributes *out) {
    char value[TEXT];
    R r = answer(d, "attributes", value); /* "SMs GPU-slices compute-slices MiB" */
    if (r != OK) return r;
    memset(out, 0, sizeof *out);
    sscanf(value, "%u %u %u %llu", &out->sms, &out->gpu_slices, &out->compute_slices, &out->memory_mib);
    return OK;
}

struct gpu_instance { struct device *device; u32 id; };
struct gpu_instance_info { struct device *device; u32 id, profile, start, size; };
_Static_assert(sizeof(struct gpu_instance_info) == 24, "nvmlGpuInstanceInfo_t");
static struct gpu_instance gpu_instances[DEVICES][64];
R nvmlDeviceGetGpuInstanceById(struct device *d, u32 id, struct gpu_instance **out) {
    char key[64], value[TEXT];
    if (d->is_mig || id >= 64) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "gi%u.handle", id); /* only a scenario that says so fails the lookup */
    R r = answer(d, key, value);
    gpu_instances[d->slot][id] = (struct gpu_instance){d, id};
    *out = &gpu_instances[d->slot][id];
    return r == NOT_SUPPORTED ? OK : r;
}
R nvmlGpuInstanceGetInfo(struct gpu_instance *instance, struct gpu_instance_info *out) {
    char key[64], value[TEXT];
    snprintf(key, sizeof key, "gi%u.placement", instance->id); /* "start size" */
    R r = answer(instance->device, key, value);
    if (r != OK) return r;
    *out = (struct gpu_instance_info){instance->device, instance->id, 0, 0, 0};
    sscanf(value, "%u %u", &out->start, &out->size);
    return OK;
}

/* ---- events ---- */

struct event { struct device *device; u64 type, data; u32 gpu_instance, compute_instance; };
_Static_assert(sizeof(struct event) == 32, "nvmlEventData_t");
/* Each set reads the queue from its head, or from where it ends now when *.events_from_now says so, and
 * is told only of devices that were registered with it. */
struct set { int position, number; u64 devices; };

R nvmlEventSetCreate(struct set **out) {
    char value[TEXT], *rest = value;
    hang("event_set");
    if (!init_count) return UNINITIALIZED;
    if (lookup("*.event_set", value) && value[0] == '!') return atoi(value + 1);
    *out = calloc(1, sizeof **out);
    (*out)->number = ++sets_made;
    if (lookup("*.events_from_now", value) && lookup("*.events", value))
        while (strtok_r(rest, " ", &rest)) (*out)->position++;
    event_sets_alive++;
    return OK;
}
R nvmlEventSetFree(struct set *set) {
    free(set);
    event_sets_alive--;
    return OK;
}
GET_64(nvmlDeviceGetSupportedEventTypes, "event_types")
R nvmlDeviceRegisterEvents(struct device *d, u64 mask, struct set *set) {
    u64 supported;
    char value[TEXT];
    R r = answer(d, "register", value);
    if (r != OK && r != NOT_SUPPORTED) return r;
    if ((r = number(d, "event_types", &supported)) != OK) return r;
    registered = mask;
    if (mask & ~supported) return NOT_SUPPORTED; /* asking for more than there is fails whole */
    set->devices |= 1ull << d->slot;
    return OK;
}
/* *.events "device:data[:type[:gi:ci]]" each, or "!code"; after the last one a wait times out. *.wait "!code":
 * each wait answers that. *.spoilt_sets N: the first N sets answer that a device is lost. */
R nvmlEventSetWait_v2(struct set *set, struct event *out, u32 timeout_ms) {
    char value[TEXT], *rest = value;
    int position = 0;
    hang("wait");
    if (!init_count) return UNINITIALIZED;
    count_key("wait");
    if (lookup("*.wait", value) && value[0] == '!') return atoi(value + 1);
    if (lookup("*.spoilt_sets", value) && set->number <= atoi(value)) return 15;
    if (lookup("*.events", value))
        for (char *item; (item = strtok_r(rest, " ", &rest)); position++) {
            if (position < set->position) continue;
            u32 index = 0;
            ++set->position;
            if (item[0] == '!') return atoi(item + 1);
            *out = (struct event){NULL, 8, 0, NONE_32, NONE_32};
            sscanf(item, "%u:%llu:%llu:%u:%u", &index, &out->data, &out->type, &out->gpu_instance,
                   &out->compute_instance);
            if (!(set->devices >> index & 1)) continue;
            out->device = &physical[index];
            return OK;
        }
    usleep(timeout_ms * 1000);
    return TIMEOUT;
}

/* ---- GPM: metrics between two samples ---- */

#ifndef NO_GPM
struct gpm_support { u32 version, supported; };
struct gpm_sample { struct device *device; u32 gpu_instance, sequence; u64 taken_ms; };
struct gpm_metric { u32 id; R ret; double value; char *names[3]; };
struct gpm_get { u32 version, count; struct gpm_sample *first, *second; struct gpm_metric metrics[477]; };
_Static_assert(sizeof(struct gpm_metric) == 40 && sizeof(struct gpm_get) == 19104, "nvmlGpmMetricsGet_t");

static u32 samples_taken = 0;
R nvmlGpmQueryDeviceSupport(struct device *d, struct gpm_support *out) { return number32(d, "gpm", &out->supported); }
R nvmlGpmSampleAlloc(struct gpm_sample **out) {
    char value[TEXT];
    hang("gpm_alloc");
    if (lookup("*.gpm_alloc", value) && samples_alive >= atoi(value)) return 20; /* no memory for more */
    *out = calloc(1, sizeof **out);
    samples_alive++;
    return OK;
}
R nvmlGpmSampleFree(struct gpm_sample *sample) {
    char value[TEXT];
    free(sample);
    samples_alive--;
    return lookup("*.gpm_free", value) && value[0] == '!' ? atoi(value + 1) : OK; /* freed, yet complaining */
}
R nvmlGpmMigSampleGet(struct device *d, u32 gpu_instance, struct gpm_sample *sample) {
    struct timespec now;
    char value[TEXT];
    R r = answer(d, "gpm_sample", value);
    if (r != OK && r != NOT_SUPPORTED) return r;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *sample = (struct gpm_sample){d, gpu_instance, ++samples_taken, (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000};
    /* A test with a clock of its own need not wait: each sample is taken that long after the one before. */
    if (lookup("*.gpm_step_ms", value)) sample->taken_ms = samples_taken * strtoull(value, NULL, 10);
    return OK;
}
R nvmlGpmSampleGet(struct device *d, struct gpm_sample *sample) { return nvmlGpmMigSampleGet(d, NONE_32, sample); }
/* <device>.gpm<id>, or <device>.gi<gi>.gpm<id> for samples of a MIG instance; the value "samples" is
 * how many samples were taken from the first to the second. */
R nvmlGpmMetricsGet(struct gpm_get *get_) {
    const struct gpm_sample *a = get_->first, *b = get_->second;
    char key[64], value[TEXT];
    hang("gpm_metrics");
    if (get_->version != 1) return VERSION_MISMATCH;
    if (!a->device || a->device != b->device || b->taken_ms < a->taken_ms + 99) return INVALID_ARGUMENT;
    for (u32 i = 0; i < get_->count; i++) {
        struct gpm_metric *m = &get_->metrics[i];
        if (b->gpu_instance == NONE_32) snprintf(key, sizeof key, "gpm%u", m->id);
        else snprintf(key, sizeof key, "gi%u.gpm%u", b->gpu_instance, m->id);
        m->ret = answer(b->device, key, value);
        m->value = m->ret != OK ? 0 : strcmp(value, "samples") ? atof(value) : b->sequence - a->sequence;
    }
    return OK;
}
#endif
