// SPDX-License-Identifier: GPL-2.0
/*
 * The network interface of each port: Ethernet with the statistics of mlx5_core for a RoCE port, and an
 * IPoIB-like one for an InfiniBand port. Neither carries packets.
 */
#include "testhca.h"

#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/if_infiniband.h>
#include <linux/rtnetlink.h>

/*
 * Out of drivers/net/ethernet/mellanox/mlx5/core/en_stats.c, which has hundreds: pauses and losses
 * by priority, and the state of the cable.
 */
#define PER_PRIORITY(direction, what)                                                              \
	direction "_prio0_" what, direction "_prio1_" what, direction "_prio2_" what,              \
		direction "_prio3_" what, direction "_prio4_" what, direction "_prio5_" what,      \
		direction "_prio6_" what, direction "_prio7_" what

static const char stat_names[][ETH_GSTRING_LEN] = {
	"rx_packets",
	"rx_bytes",
	"tx_packets",
	"tx_bytes",
	"rx_ecn_mark",
	"rx_out_of_buffer",
	"rx_crc_errors_phy",
	"rx_symbol_err_phy",
	"rx_bits_phy",
	"rx_bytes_phy",
	"tx_bytes_phy",
	"rx_discards_phy",
	"tx_discards_phy",
	"rx_pcs_symbol_err_phy",
	"rx_corrected_bits_phy",
	"link_down_events_phy",
	"outbound_pci_buffer_overflow",
	"module_unplug",
	"module_bad_cable",
	"rx_global_pause",
	"tx_global_pause",
	"tx_pause_storm_warning_events",
	"tx_pause_storm_error_events",
	PER_PRIORITY("rx", "bytes"),
	PER_PRIORITY("tx", "bytes"),
	PER_PRIORITY("rx", "discards"),
	PER_PRIORITY("rx", "pause"),
	PER_PRIORITY("rx", "pause_duration"),
	PER_PRIORITY("rx", "pause_transition"),
	PER_PRIORITY("tx", "pause"),
	PER_PRIORITY("tx", "pause_duration"),
	PER_PRIORITY("rx", "buf_discard"),
};

/* The module's pages: the lower half, and the upper halves of pages 0 to 17. Of address 0x51, as of an SFP: none. */
#define TESTHCA_PAGES 18

struct testhca_netdev {
	u64 stats[ARRAY_SIZE(stat_names)];
	u8 eeprom[1 + TESTHCA_PAGES][ETH_MODULE_EEPROM_PAGE_LEN];
	bool connected; /* the mode of IPoIB */
};

int testhca_netdev_set_stat(struct net_device *netdev, const char *name, u64 value)
{
	struct testhca_netdev *priv = netdev_priv(netdev);
	unsigned int i;

	if (netdev->type != ARPHRD_ETHER)
		return -EOPNOTSUPP;
	for (i = 0; i < ARRAY_SIZE(stat_names); i++) {
		if (strcmp(stat_names[i], name))
			continue;
		WRITE_ONCE(priv->stats[i], value);
		return 0;
	}
	return -ENOENT;
}

/* Sets a byte of the module: at 0 to 127 of the lower half, from there on of the upper halves, one by one. */
int testhca_netdev_set_module(struct net_device *netdev, const char *at, u64 value)
{
	struct testhca_netdev *priv = netdev_priv(netdev);
	u32 index;

	if (netdev->type != ARPHRD_ETHER || value > U8_MAX)
		return -EINVAL;
	if (kstrtou32(at, 0, &index) || index >= sizeof(priv->eeprom))
		return -ERANGE;
	WRITE_ONCE(((u8 *)priv->eeprom)[index], value);
	return 0;
}

static int get_module_page(struct net_device *netdev, const struct ethtool_module_eeprom *page,
			   struct netlink_ext_ack *extack)
{
	struct testhca_netdev *priv = netdev_priv(netdev);
	u32 half = page->offset < ETH_MODULE_EEPROM_PAGE_LEN ? 0 : 1 + page->page;
	u32 offset = page->offset % ETH_MODULE_EEPROM_PAGE_LEN;

	/* Without an identifier no module is plugged. */
	if (!priv->eeprom[0][0] || page->i2c_address != 0x50 || page->page >= TESTHCA_PAGES)
		return -EIO;
	memcpy(page->data, priv->eeprom[half] + offset, page->length);
	return page->length;
}

void testhca_netdev_set_carrier(struct net_device *netdev, bool carrier)
{
	if (carrier)
		netif_carrier_on(netdev);
	else
		netif_carrier_off(netdev);
}

static netdev_tx_t start_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops netdev_ops = {
	.ndo_start_xmit = start_xmit,
};

static void get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, TESTHCA_DRIVER, sizeof(info->driver));
	strscpy(info->fw_version, "20.36.1010 (MT_0000000223)", sizeof(info->fw_version));
	strscpy(info->bus_info, dev_name(netdev->dev.parent), sizeof(info->bus_info));
}

static int get_sset_count(struct net_device *netdev, int set)
{
	return set == ETH_SS_STATS ? ARRAY_SIZE(stat_names) : -EOPNOTSUPP;
}

static void get_strings(struct net_device *netdev, u32 set, u8 *strings)
{
	if (set == ETH_SS_STATS)
		memcpy(strings, stat_names, sizeof(stat_names));
}

static void get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *values)
{
	struct testhca_netdev *priv = netdev_priv(netdev);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(stat_names); i++)
		values[i] = READ_ONCE(priv->stats[i]);
}

static const struct ethtool_ops eth_ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_ethtool_stats = get_ethtool_stats,
	.get_link = ethtool_op_get_link,
	.get_module_eeprom_by_page = get_module_page,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
};

static ssize_t mode_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct testhca_netdev *priv = netdev_priv(to_net_dev(dev));

	return sysfs_emit(buf, "%s\n", READ_ONCE(priv->connected) ? "connected" : "datagram");
}

static ssize_t mode_store(struct device *dev, struct device_attribute *attr, const char *buf,
			  size_t count)
{
	struct testhca_netdev *priv = netdev_priv(to_net_dev(dev));

	if (sysfs_streq(buf, "connected"))
		WRITE_ONCE(priv->connected, true);
	else if (sysfs_streq(buf, "datagram"))
		WRITE_ONCE(priv->connected, false);
	else
		return -EINVAL;
	return count;
}
static DEVICE_ATTR_RW(mode);

static ssize_t pkey_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "0x%04x\n", IB_DEFAULT_PKEY_FULL);
}
static DEVICE_ATTR_RO(pkey);

static struct attribute *ipoib_attributes[] = {
	&dev_attr_mode.attr,
	&dev_attr_pkey.attr,
	NULL,
};

static const struct attribute_group ipoib_group = {
	.attrs = ipoib_attributes,
};

static void setup_ipoib(struct net_device *netdev)
{
	netdev->type = ARPHRD_INFINIBAND;
	netdev->addr_len = INFINIBAND_ALEN;
	netdev->hard_header_len = 0;
	netdev->flags = IFF_BROADCAST | IFF_MULTICAST;
	/* 4096 bytes of InfiniBand less IPoIB's own 4; connected mode goes up to 65520. */
	netdev->mtu = 4092;
	netdev->min_mtu = 68;
	netdev->max_mtu = 65520;
	netdev->tx_queue_len = 256;
	netdev->sysfs_groups[0] = &ipoib_group;
}

int testhca_netdev_create(struct testhca *hca, u32 port)
{
	struct net_device *netdev;
	char name[IFNAMSIZ];
	u8 hardware_address[INFINIBAND_ALEN] = {};
	int err;

	snprintf(name, sizeof(name), "%snet%u", hca->name, port);
	netdev = alloc_netdev(sizeof(struct testhca_netdev), name, NET_NAME_USER,
			      hca->eth ? ether_setup : setup_ipoib);
	if (!netdev)
		return -ENOMEM;

	SET_NETDEV_DEV(netdev, &hca->parent->dev);
	netdev->dev_port = port - 1;
	netdev->netdev_ops = &netdev_ops;
	if (hca->eth) {
		netdev->ethtool_ops = &eth_ethtool_ops;
		eth_hw_addr_random(netdev);
	} else {
		/* Its last eight bytes are the GUID of the port. */
		put_unaligned_be64(0xfe80000000000000ull, hardware_address + 4);
		put_unaligned_be64(hca->guid + port, hardware_address + 12);
		__dev_addr_set(netdev, hardware_address, sizeof(hardware_address));
	}

	/* From "no carrier" to one is a change, which makes its operstate "up" and not "unknown". */
	netif_carrier_off(netdev);
	err = register_netdev(netdev);
	if (err) {
		free_netdev(netdev);
		return err;
	}

	/* Up, because ib_core derives the first GIDs of a RoCE port from an interface that is up. */
	rtnl_lock();
	err = dev_open(netdev, NULL);
	rtnl_unlock();
	netif_carrier_on(netdev);
	hca->ports[port - 1].netdev = netdev;
	return err;
}

void testhca_netdev_destroy(struct net_device *netdev)
{
	unregister_netdev(netdev);
	free_netdev(netdev);
}
