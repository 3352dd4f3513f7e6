#pragma once
#include <stdint.h>
#include <stddef.h>
void fk_init(void);
int fk_ndev(void);
int fk_trace(void);
int fk_lag(void);
void fk_set_lag(int);
void fk_set_capacity_mb(uint64_t);
uint64_t fk_used(int);
uint64_t fk_capacity(void);
void fk_meminfo(int, size_t *, size_t *);
int fk_phys_take(int, uint64_t);
void fk_phys_give(int, uint64_t);
uint64_t fk_malloc(int, uint64_t);
int fk_free(uint64_t);
int fk_isdev(const void *);
int fk_devof(const void *);
extern __thread int fk_curdev;
#ifndef FAKE_CUDA_VERSION
#define FAKE_CUDA_VERSION 12040
#endif
