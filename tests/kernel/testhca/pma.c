// SPDX-License-Identifier: GPL-2.0
/*
 * The performance management agent: ib_core reads everything below counters/ from it by MAD.
 *
 * Counters stick at the largest value of their field in the MAD (IBTA 1.7, 16.1.3.5), and those
 * fields are narrow. Programs have to handle that, so the values are not wider here.
 */
#include "testhca.h"

#include <linux/delay.h>
#include <rdma/ib_pma.h>

/* A performance MAD has 40 reserved bytes between its header and the attribute. */
#define PMA_DATA_OFFSET 40

const char *const testhca_counter_names[TESTHCA_COUNTERS] = {
	[SYMBOL_ERROR] = "symbol_error",
	[LINK_ERROR_RECOVERY] = "link_error_recovery",
	[LINK_DOWNED] = "link_downed",
	[PORT_RCV_ERRORS] = "port_rcv_errors",
	[PORT_RCV_REMOTE_PHYSICAL_ERRORS] = "port_rcv_remote_physical_errors",
	[PORT_RCV_SWITCH_RELAY_ERRORS] = "port_rcv_switch_relay_errors",
	[PORT_XMIT_DISCARDS] = "port_xmit_discards",
	[PORT_XMIT_CONSTRAINT_ERRORS] = "port_xmit_constraint_errors",
	[PORT_RCV_CONSTRAINT_ERRORS] = "port_rcv_constraint_errors",
	[LOCAL_LINK_INTEGRITY_ERRORS] = "local_link_integrity_errors",
	[EXCESSIVE_BUFFER_OVERRUN_ERRORS] = "excessive_buffer_overrun_errors",
	[VL15_DROPPED] = "VL15_dropped",
	[PORT_XMIT_DATA] = "port_xmit_data",
	[PORT_RCV_DATA] = "port_rcv_data",
	[PORT_XMIT_PACKETS] = "port_xmit_packets",
	[PORT_RCV_PACKETS] = "port_rcv_packets",
	[PORT_XMIT_WAIT] = "port_xmit_wait",
	[UNICAST_XMIT_PACKETS] = "unicast_xmit_packets",
	[UNICAST_RCV_PACKETS] = "unicast_rcv_packets",
	[MULTICAST_XMIT_PACKETS] = "multicast_xmit_packets",
	[MULTICAST_RCV_PACKETS] = "multicast_rcv_packets",
};

/* A counter in a field of this many bits. */
static u64 stuck(const struct testhca_port *port, enum testhca_counter counter, unsigned int bits)
{
	return min_t(u64, READ_ONCE(port->counters[counter]), GENMASK_ULL(bits - 1, 0));
}

static void class_port_info(struct ib_class_port_info *info)
{
	info->base_version = 1;
	info->class_version = 1;
	/* Without this, ib_core shows the data and packet counters of 32 bits only. */
	info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
}

static void port_counters(const struct testhca_port *port, struct ib_pma_portcounters *pma)
{
	pma->symbol_error_counter = cpu_to_be16(stuck(port, SYMBOL_ERROR, 16));
	pma->link_error_recovery_counter = stuck(port, LINK_ERROR_RECOVERY, 8);
	pma->link_downed_counter = stuck(port, LINK_DOWNED, 8);
	pma->port_rcv_errors = cpu_to_be16(stuck(port, PORT_RCV_ERRORS, 16));
	pma->port_rcv_remphys_errors =
		cpu_to_be16(stuck(port, PORT_RCV_REMOTE_PHYSICAL_ERRORS, 16));
	pma->port_rcv_switch_relay_errors =
		cpu_to_be16(stuck(port, PORT_RCV_SWITCH_RELAY_ERRORS, 16));
	pma->port_xmit_discards = cpu_to_be16(stuck(port, PORT_XMIT_DISCARDS, 16));
	pma->port_xmit_constraint_errors = stuck(port, PORT_XMIT_CONSTRAINT_ERRORS, 8);
	pma->port_rcv_constraint_errors = stuck(port, PORT_RCV_CONSTRAINT_ERRORS, 8);
	pma->link_overrun_errors = stuck(port, LOCAL_LINK_INTEGRITY_ERRORS, 4) << 4 |
				   stuck(port, EXCESSIVE_BUFFER_OVERRUN_ERRORS, 4);
	pma->vl15_dropped = cpu_to_be16(stuck(port, VL15_DROPPED, 16));
	pma->port_xmit_data = cpu_to_be32(stuck(port, PORT_XMIT_DATA, 32));
	pma->port_rcv_data = cpu_to_be32(stuck(port, PORT_RCV_DATA, 32));
	pma->port_xmit_packets = cpu_to_be32(stuck(port, PORT_XMIT_PACKETS, 32));
	pma->port_rcv_packets = cpu_to_be32(stuck(port, PORT_RCV_PACKETS, 32));
	pma->port_xmit_wait = cpu_to_be32(stuck(port, PORT_XMIT_WAIT, 32));
}

static void port_counters_ext(const struct testhca_port *port, struct ib_pma_portcounters_ext *pma)
{
	pma->port_xmit_data = cpu_to_be64(stuck(port, PORT_XMIT_DATA, 64));
	pma->port_rcv_data = cpu_to_be64(stuck(port, PORT_RCV_DATA, 64));
	pma->port_xmit_packets = cpu_to_be64(stuck(port, PORT_XMIT_PACKETS, 64));
	pma->port_rcv_packets = cpu_to_be64(stuck(port, PORT_RCV_PACKETS, 64));
	pma->port_unicast_xmit_packets = cpu_to_be64(stuck(port, UNICAST_XMIT_PACKETS, 64));
	pma->port_unicast_rcv_packets = cpu_to_be64(stuck(port, UNICAST_RCV_PACKETS, 64));
	pma->port_multicast_xmit_packets = cpu_to_be64(stuck(port, MULTICAST_XMIT_PACKETS, 64));
	pma->port_multicast_rcv_packets = cpu_to_be64(stuck(port, MULTICAST_RCV_PACKETS, 64));
}

int testhca_process_mad(struct ib_device *ib, int flags, u32 port_num, const struct ib_wc *wc,
			const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
			size_t *out_size, u16 *out_pkey_index)
{
	const struct testhca_port *port = testhca_port(ib, port_num);
	void *data = out->data + PMA_DATA_OFFSET;

	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT)
		return IB_MAD_RESULT_SUCCESS;
	while (READ_ONCE(port->pmahang))
		msleep(10);

	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		/*
		 * Succeeds even if the rest fails: when ib_core adds the device, it decides by this
		 * which files exist.
		 */
		class_port_info(data);
		break;
	case IB_PMA_PORT_COUNTERS:
		if (READ_ONCE(port->pmafail))
			return IB_MAD_RESULT_FAILURE;
		port_counters(port, data);
		break;
	case IB_PMA_PORT_COUNTERS_EXT:
		if (READ_ONCE(port->pmafail))
			return IB_MAD_RESULT_FAILURE;
		port_counters_ext(port, data);
		break;
	default:
		return IB_MAD_RESULT_FAILURE;
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
