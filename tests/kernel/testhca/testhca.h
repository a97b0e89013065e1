/* SPDX-License-Identifier: GPL-2.0 */
/*
 * testhca: RDMA devices without a data path, for tests.
 *
 * Programs access the devices through the kernel's ib_core and ib_uverbs: this module only replaces a
 * vendor's driver, and lets a test set what the hardware reports.
 */
#ifndef TESTHCA_H
#define TESTHCA_H

#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

/* The driver that the cards report. */
#define TESTHCA_DRIVER "mlx5_core"
#define TESTHCA_MAX_PORTS 4
/* The name of a port's netdev, "NAMEnetP", must fit IFNAMSIZ. */
#define TESTHCA_NAME_LEN 11
/* No fewer than the hw_counters of device.c. */
#define TESTHCA_MAX_HW 16

/* The counters of a port as sysfs names them, in the order of testhca_counter_names. */
enum testhca_counter {
	SYMBOL_ERROR,
	LINK_ERROR_RECOVERY,
	LINK_DOWNED,
	PORT_RCV_ERRORS,
	PORT_RCV_REMOTE_PHYSICAL_ERRORS,
	PORT_RCV_SWITCH_RELAY_ERRORS,
	PORT_XMIT_DISCARDS,
	PORT_XMIT_CONSTRAINT_ERRORS,
	PORT_RCV_CONSTRAINT_ERRORS,
	LOCAL_LINK_INTEGRITY_ERRORS,
	EXCESSIVE_BUFFER_OVERRUN_ERRORS,
	VL15_DROPPED,
	PORT_XMIT_DATA,
	PORT_RCV_DATA,
	PORT_XMIT_PACKETS,
	PORT_RCV_PACKETS,
	PORT_XMIT_WAIT,
	UNICAST_XMIT_PACKETS,
	UNICAST_RCV_PACKETS,
	MULTICAST_XMIT_PACKETS,
	MULTICAST_RCV_PACKETS,
	TESTHCA_COUNTERS,
};

/*
 * One port. Only the control file writes these words, and each is read separately, so READ_ONCE and
 * WRITE_ONCE are sufficient.
 */
struct testhca_port {
	u32 state;
	u32 phys;
	u32 speed;
	u32 width;
	u32 lid;
	u32 sm_lid;
	u32 pmafail;
	u32 pmahang;
	u32 hwfail;
	u32 hwhang;
	u64 counters[TESTHCA_COUNTERS];
	u64 hw[TESTHCA_MAX_HW];
	struct net_device *netdev;
};

struct testhca {
	struct ib_device ib; /* first, as ib_alloc_device wants it */
	struct list_head list;
	struct platform_device *parent;
	char name[TESTHCA_NAME_LEN];
	u64 guid;
	u32 port_count;
	bool eth;
	struct testhca_port ports[TESTHCA_MAX_PORTS];
};

/* Ports are counted from 1, as everywhere in InfiniBand. */
static inline struct testhca_port *testhca_port(struct ib_device *ib, u32 port)
{
	return &container_of(ib, struct testhca, ib)->ports[port - 1];
}

/* device.c */
struct testhca *testhca_create(const char *name, u32 ports, bool eth);
void testhca_destroy(struct testhca *hca);
int testhca_hw_index(const char *name);

/* netdev.c */
int testhca_netdev_create(struct testhca *hca, u32 port);
void testhca_netdev_destroy(struct net_device *netdev);
void testhca_netdev_set_carrier(struct net_device *netdev, bool carrier);
int testhca_netdev_set_module(struct net_device *netdev, const char *at, u64 value);
int testhca_netdev_set_stat(struct net_device *netdev, const char *name, u64 value);

/* pma.c */
extern const char *const testhca_counter_names[TESTHCA_COUNTERS];
int testhca_process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc,
			const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
			size_t *out_size, u16 *out_pkey_index);

#endif
