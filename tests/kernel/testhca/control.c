// SPDX-License-Identifier: GPL-2.0
/*
 * The control file, /sys/module/testhca/parameters/ctl. A command a line:
 *
 *	add NAME ports N [eth]
 *	del NAME
 *	NAME event CODE PORT
 *	NAME port P state|phys|speed|width|lid|sm_lid N
 *	NAME port P counter COUNTER N		as the file below counters/ is called
 *	NAME port P hw COUNTER N		as the file below hw_counters/ is called, or its number
 *	NAME port P pmafail 0|1			makes what is below counters/ unreadable, with EINVAL
 *	NAME port P pmahang 0|1			reads of them block, as with firmware that hangs
 *	NAME port P hwfail ERRNO		the same for hw_counters/, 0 to end it
 *	NAME port P hwhang 0|1			the same for hw_counters/
 *	NAME port P ethtool STATISTIC N		only with eth
 *	NAME port P module OFFSET BYTE		only with eth
 *
 * Numbers are those of the InfiniBand specification and <rdma/ib_verbs.h>. If a command fails, the write
 * fails, and the kernel log has the command.
 */
#include "testhca.h"

#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/mutex.h>

/* Held from command to command: two writers may both want the same name. */
static DEFINE_MUTEX(devices_lock);
static LIST_HEAD(devices);

#define MAX_WORDS 6

static struct testhca *find(const char *name)
{
	struct testhca *hca;

	list_for_each_entry(hca, &devices, list)
		if (!strcmp(hca->name, name))
			return hca;
	return NULL;
}

/* The name becomes a directory and, as a format, the name of a netdev. */
static bool valid_name(const char *name)
{
	const char *c;

	for (c = name; *c; c++)
		if (!isalnum(*c) && *c != '_')
			return false;
	return c > name && c - name < TESTHCA_NAME_LEN;
}

static int add(int count, char **words)
{
	struct testhca *hca;
	bool eth = count == 5;
	u32 ports;

	if (count < 4 || count > 5 || strcmp(words[2], "ports") || kstrtou32(words[3], 0, &ports))
		return -EINVAL;
	if (eth && strcmp(words[4], "eth"))
		return -EINVAL;
	if (!valid_name(words[1]) || ports < 1 || ports > TESTHCA_MAX_PORTS)
		return -EINVAL;
	if (find(words[1]))
		return -EEXIST;

	hca = testhca_create(words[1], ports, eth);
	if (IS_ERR(hca))
		return PTR_ERR(hca);
	list_add_tail(&hca->list, &devices);
	return 0;
}

static void del(struct testhca *hca)
{
	list_del(&hca->list);
	testhca_destroy(hca);
}

static int event(struct testhca *hca, int count, char **words)
{
	struct ib_event event = { .device = &hca->ib };
	u32 code, port;

	if (count != 4 || kstrtou32(words[2], 0, &code) || kstrtou32(words[3], 0, &port))
		return -EINVAL;
	/* Port 0 is the device itself. */
	if (port > hca->port_count)
		return -ENODEV;
	event.event = code;
	event.element.port_num = port;
	ib_dispatch_event(&event);
	return 0;
}

static int set_counter(struct testhca_port *port, const char *name, u64 value)
{
	unsigned int i;

	for (i = 0; i < TESTHCA_COUNTERS; i++) {
		if (strcmp(testhca_counter_names[i], name))
			continue;
		WRITE_ONCE(port->counters[i], value);
		return 0;
	}
	return -ENOENT;
}

/* NAME port P WHAT NAME N */
static int set_named(struct testhca_port *port, const char *what, const char *name, u64 value)
{
	int index;

	if (!strcmp(what, "counter"))
		return set_counter(port, name, value);
	if (!strcmp(what, "ethtool"))
		return testhca_netdev_set_stat(port->netdev, name, value);
	if (!strcmp(what, "module"))
		return testhca_netdev_set_module(port->netdev, name, value);
	if (strcmp(what, "hw"))
		return -EINVAL;
	index = testhca_hw_index(name);
	if (index < 0)
		return index;
	WRITE_ONCE(port->hw[index], value);
	return 0;
}

/* NAME port P WHAT N */
static int set_plain(struct testhca_port *port, const char *what, u32 value)
{
	const struct {
		const char *name;
		u32 *field;
	} fields[] = {
		{ "state", &port->state },     { "phys", &port->phys },
		{ "speed", &port->speed },     { "width", &port->width },
		{ "lid", &port->lid },	       { "sm_lid", &port->sm_lid },
		{ "pmafail", &port->pmafail }, { "hwfail", &port->hwfail },
		{ "hwhang", &port->hwhang },   { "pmahang", &port->pmahang },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		if (strcmp(fields[i].name, what))
			continue;
		/* get_hw_stats returns it; the kernel treats larger values as success. */
		if (fields[i].field == &port->hwfail && value > MAX_ERRNO)
			return -EINVAL;
		WRITE_ONCE(*fields[i].field, value);
		/* The interface shares the port's cable. */
		if (fields[i].field == &port->state)
			testhca_netdev_set_carrier(port->netdev, value == IB_PORT_ACTIVE);
		return 0;
	}
	return -EINVAL;
}

static int set(struct testhca *hca, int count, char **words)
{
	u32 port;
	u64 value;

	if (count < 5 || kstrtou32(words[2], 0, &port) || kstrtou64(words[count - 1], 0, &value))
		return -EINVAL;
	if (port < 1 || port > hca->port_count)
		return -ENODEV;
	if (count == 6)
		return set_named(&hca->ports[port - 1], words[3], words[4], value);
	return value > U32_MAX ? -ERANGE : set_plain(&hca->ports[port - 1], words[3], value);
}

static int run(int count, char **words)
{
	struct testhca *hca;

	if (count < 2)
		return -EINVAL;
	if (!strcmp(words[0], "add"))
		return add(count, words);

	hca = find(strcmp(words[0], "del") ? words[0] : words[1]);
	if (!hca)
		return -ENODEV;
	if (!strcmp(words[0], "del")) {
		del(hca);
		return 0;
	}
	if (!strcmp(words[1], "event"))
		return event(hca, count, words);
	if (!strcmp(words[1], "port"))
		return set(hca, count, words);
	return -EINVAL;
}

/* Splits the line, in place, and runs the command. */
static int run_line(char *line)
{
	/* One more, to detect a line with too many words. */
	char *words[MAX_WORDS + 1];
	char *word;
	int count = 0;

	while ((word = strsep(&line, " \t"))) {
		if (!*word)
			continue;
		if (count == MAX_WORDS)
			return -EINVAL;
		words[count++] = word;
	}
	return count ? run(count, words) : 0;
}

static int ctl_set(const char *text, const struct kernel_param *param)
{
	char *copy = kstrdup(text, GFP_KERNEL);
	const char *at = text;
	char *rest = copy;
	char *line;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	mutex_lock(&devices_lock);
	while (!err && (line = strsep(&rest, "\n"))) {
		int length = strlen(line);

		err = run_line(line);
		if (err)
			pr_err("testhca: \"%.*s\": error %d\n", length, at, err);
		at += length + 1;
	}
	mutex_unlock(&devices_lock);
	kfree(copy);
	return err;
}

static const struct kernel_param_ops ctl_ops = {
	.set = ctl_set,
};
module_param_cb(ctl, &ctl_ops, NULL, 0200);

static struct platform_driver driver = {
	.driver = { .name = TESTHCA_DRIVER },
};

static int __init testhca_init(void)
{
	return platform_driver_register(&driver);
}

static void __exit testhca_exit(void)
{
	struct testhca *hca, *next;

	list_for_each_entry_safe(hca, next, &devices, list)
		del(hca);
	platform_driver_unregister(&driver);
}

module_init(testhca_init);
module_exit(testhca_exit);
MODULE_DESCRIPTION("RDMA devices without a data path, for tests");
MODULE_LICENSE("GPL");
