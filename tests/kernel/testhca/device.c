// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device: the operations of a driver, with values from a struct.
 */
#include "testhca.h"

#include <linux/delay.h>
#include <linux/stringhash.h>
#include <linux/sysfs.h>
#include <rdma/uverbs_ioctl.h>

/* As reported by a ConnectX-6, so that programs read a real value. */
#define FW_MAJOR 20
#define FW_MINOR 36
#define FW_SUB 1010

#define ETH_GIDS 16
#define IB_GIDS 1
#define PKEYS 4

/* A real mlx5_core has about 40; these are the ones that are used in alerts. */
static const struct rdma_stat_desc hw_counters[] = {
	{ .name = "out_of_buffer" },
	{ .name = "out_of_sequence" },
	{ .name = "packet_seq_err" },
	{ .name = "local_ack_timeout_err" },
	{ .name = "rx_write_requests" },
	{ .name = "roce_adp_retrans" },
	{ .name = "rnr_nak_retry_err" },
	{ .name = "rp_cnp_handled" },
	{ .name = "np_cnp_sent" },
	{ .name = "np_ecn_marked_roce_packets" },
	{ .name = "req_cqe_error" },
	{ .name = "req_transport_retries_exceeded" },
};
static_assert(ARRAY_SIZE(hw_counters) <= TESTHCA_MAX_HW);

/* The index of this name in hw_counters/, or a negative errno. */
int testhca_hw_index(const char *name)
{
	unsigned int i;

	/* By number, too. */
	if (!kstrtouint(name, 10, &i))
		return i < ARRAY_SIZE(hw_counters) ? i : -ENOENT;
	for (i = 0; i < ARRAY_SIZE(hw_counters); i++)
		if (!strcmp(hw_counters[i].name, name))
			return i;
	return -ENOENT;
}

static struct testhca *to_testhca(struct ib_device *ib)
{
	return container_of(ib, struct testhca, ib);
}

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = (u64)FW_MAJOR << 32 | FW_MINOR << 16 | FW_SUB;
	attr->vendor_id = 0x02c9;
	attr->vendor_part_id = 4123;
	attr->max_pkeys = PKEYS;
	attr->sys_image_guid = cpu_to_be64(to_testhca(ib)->guid);
	attr->device_cap_flags = IB_DEVICE_PORT_ACTIVE_EVENT;
	return 0;
}

static int query_port(struct ib_device *ib, u32 port_num, struct ib_port_attr *attr)
{
	const struct testhca_port *port = testhca_port(ib, port_num);

	attr->state = READ_ONCE(port->state);
	attr->phys_state = READ_ONCE(port->phys);
	attr->active_speed = READ_ONCE(port->speed);
	attr->active_width = READ_ONCE(port->width);
	attr->lid = READ_ONCE(port->lid);
	attr->sm_lid = READ_ONCE(port->sm_lid);
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = to_testhca(ib)->eth ? ETH_GIDS : IB_GIDS;
	attr->pkey_tbl_len = PKEYS;
	attr->port_cap_flags = 0x2651e848;
	attr->max_msg_sz = 1 << 30;
	return 0;
}

static int get_port_immutable(struct ib_device *ib, u32 port_num, struct ib_port_immutable *port)
{
	bool eth = to_testhca(ib)->eth;

	/*
	 * No IB_MAD among them: it would have ib_core make queue pairs 0 and 1, and there is no
	 * data path. Therefore the device has no umad. ib_core reads the counters without.
	 */
	port->core_cap_flags = eth ? RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP : RDMA_CORE_CAP_PROT_IB;
	port->gid_tbl_len = eth ? ETH_GIDS : IB_GIDS;
	port->pkey_tbl_len = PKEYS;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ib, u32 port_num)
{
	return to_testhca(ib)->eth ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

static int query_gid(struct ib_device *ib, u32 port_num, int index, union ib_gid *gid)
{
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ull);
	gid->global.interface_id = cpu_to_be64(to_testhca(ib)->guid + port_num);
	return 0;
}

static int query_pkey(struct ib_device *ib, u32 port_num, u16 index, u16 *pkey)
{
	*pkey = index == 0 ? IB_DEFAULT_PKEY_FULL : 0;
	return 0;
}

/* ib_core maintains the table of a RoCE port itself, but requires both operations. */
static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

/*
 * Not with ib_device_set_netdev: when an interface changes, rxe looks up the devices of interfaces set in
 * this way, by its own driver_id, and would treat this device as its own.
 */
static struct net_device *get_netdev(struct ib_device *ib, u32 port_num)
{
	struct net_device *netdev = testhca_port(ib, port_num)->netdev;

	if (!to_testhca(ib)->eth)
		return NULL;
	dev_hold(netdev);
	return netdev;
}

static void get_dev_fw_str(struct ib_device *ib, char *text)
{
	snprintf(text, IB_FW_VERSION_NAME_MAX, "%d.%d.%d", FW_MAJOR, FW_MINOR, FW_SUB);
}

struct testhca_ucontext {
	struct ib_ucontext ib;
};

static int alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static void dealloc_ucontext(struct ib_ucontext *context)
{
}

/*
 * With this operation the device can be removed while programs hold it open; ib_uverbs then sends them
 * DEVICE_FATAL. Without it (rxe) the removal waits for them.
 */
static void disassociate_ucontext(struct ib_ucontext *context)
{
}

static struct rdma_hw_stats *alloc_hw_port_stats(struct ib_device *ib, u32 port_num)
{
	return rdma_alloc_hw_stats_struct(hw_counters, ARRAY_SIZE(hw_counters),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port_num, int index)
{
	const struct testhca_port *port = testhca_port(ib, port_num);
	int failure = READ_ONCE(port->hwfail);
	unsigned int i;

	while (READ_ONCE(port->hwhang))
		msleep(10);
	if (failure)
		return -failure;
	for (i = 0; i < ARRAY_SIZE(hw_counters); i++)
		stats->value[i] = READ_ONCE(port->hw[i]);
	/*
	 * "Only this one is new", although all are: the kernel would hold them for the lifespan
	 * of 10 ms otherwise, and a test could not know when its value becomes visible.
	 */
	return index;
}

static ssize_t hca_type_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "MT4123\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "0\n");
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t board_id_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "MT_0000000223\n");
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *device_attributes[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_hw_rev.attr,
	&dev_attr_board_id.attr,
	NULL,
};

static const struct attribute_group device_group = {
	.attrs = device_attributes,
};

static const struct ib_device_ops device_ops = {
	.owner = THIS_MODULE,
	/* libibverbs selects its provider by this number, and that of rxe needs the least of a device. */
	.driver_id = RDMA_DRIVER_RXE,
	.uverbs_abi_ver = 2,
	.add_gid = add_gid,
	.alloc_hw_port_stats = alloc_hw_port_stats,
	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.del_gid = del_gid,
	.device_group = &device_group,
	.disassociate_ucontext = disassociate_ucontext,
	.get_dev_fw_str = get_dev_fw_str,
	.get_hw_stats = get_hw_stats,
	.get_link_layer = get_link_layer,
	.get_netdev = get_netdev,
	.get_port_immutable = get_port_immutable,
	.process_mad = testhca_process_mad,
	.query_device = query_device,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.query_port = query_port,
	INIT_RDMA_OBJ_SIZE(ib_ucontext, testhca_ucontext, ib),
};

/* A card has the same GUIDs when its driver is loaded again: those of one name are one card. */
static u64 guid_of(const char *name)
{
	return 0x506b4b0300000000ull | (full_name_hash(NULL, name, strlen(name)) & ~0xfu);
}

/* A healthy port: 4X HDR, active. */
static void init_port(struct testhca_port *port, u32 port_num, bool eth)
{
	port->state = IB_PORT_ACTIVE;
	port->phys = IB_PORT_PHYS_STATE_LINK_UP;
	port->speed = IB_SPEED_HDR;
	port->width = IB_WIDTH_4X;
	port->lid = eth ? 0 : 7 + port_num;
	port->sm_lid = eth ? 0 : 1;
}

/*
 * A card is one function, the parent of its RDMA device and its netdevs. Its driver is reported as mlx5,
 * because programs need the driver to know the meaning of its statistics.
 */
static struct platform_device *create_function(const char *name)
{
	struct platform_device *function;
	int err;

	function = platform_device_alloc(name, PLATFORM_DEVID_NONE);
	if (!function)
		return ERR_PTR(-ENOMEM);
	err = driver_set_override(&function->dev, &function->driver_override, TESTHCA_DRIVER,
				  strlen(TESTHCA_DRIVER));
	if (!err)
		err = platform_device_add(function);
	if (err) {
		platform_device_put(function);
		return ERR_PTR(err);
	}
	return function;
}

struct testhca *testhca_create(const char *name, u32 ports, bool eth)
{
	struct testhca *hca;
	u32 port_num;
	int err;

	hca = ib_alloc_device(testhca, ib);
	if (!hca)
		return ERR_PTR(-ENOMEM);
	strscpy(hca->name, name, sizeof(hca->name));
	hca->guid = guid_of(name);
	hca->port_count = ports;
	hca->eth = eth;
	for (port_num = 1; port_num <= ports; port_num++)
		init_port(&hca->ports[port_num - 1], port_num, eth);

	hca->parent = create_function(name);
	if (IS_ERR(hca->parent)) {
		err = PTR_ERR(hca->parent);
		goto free_device;
	}

	hca->ib.dev.parent = &hca->parent->dev;
	hca->ib.node_type = RDMA_NODE_IB_CA;
	hca->ib.node_guid = cpu_to_be64(hca->guid);
	hca->ib.phys_port_cnt = ports;
	hca->ib.num_comp_vectors = 1;
	snprintf(hca->ib.node_desc, sizeof(hca->ib.node_desc), "testhost %s", name);
	ib_set_device_ops(&hca->ib, &device_ops);

	/* The netdevs come first: ib_core reads the GIDs of a RoCE port off them as it registers. */
	for (port_num = 1; port_num <= ports; port_num++) {
		err = testhca_netdev_create(hca, port_num);
		if (err)
			goto destroy_netdevs;
	}

	err = ib_register_device(&hca->ib, name, NULL);
	if (err)
		goto destroy_netdevs;
	return hca;

destroy_netdevs:
	for (port_num = 1; port_num <= ports; port_num++) {
		if (hca->ports[port_num - 1].netdev)
			testhca_netdev_destroy(hca->ports[port_num - 1].netdev);
	}
	platform_device_unregister(hca->parent);
free_device:
	ib_dealloc_device(&hca->ib);
	return ERR_PTR(err);
}

void testhca_destroy(struct testhca *hca)
{
	/* After ib_dealloc_device the last user frees @hca, so values that are still needed are copied. */
	struct net_device *netdevs[TESTHCA_MAX_PORTS];
	struct platform_device *parent = hca->parent;
	u32 ports = hca->port_count;
	u32 i;

	for (i = 0; i < ports; i++)
		netdevs[i] = hca->ports[i].netdev;

	/* First, for ib_core holds the netdevs, and their removal would wait for it. */
	ib_unregister_device(&hca->ib);
	ib_dealloc_device(&hca->ib);
	for (i = 0; i < ports; i++)
		testhca_netdev_destroy(netdevs[i]);
	platform_device_unregister(parent);
}
