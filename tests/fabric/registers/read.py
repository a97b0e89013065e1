"""Reads registers of NVIDIA devices with mstflint's library, and decodes them by mstflint's register tables.

Usage: read.py LIBRARY TABLES LID PORT
Prints JSON: by register, the fields by name; fields that are arrays are hexadecimal.

umad2sim hands a client the first 224 bytes of a MAD: of a register, the first 188.
"""

import ctypes
import json
import sys
import xml.etree.ElementTree as ElementTree

GET = 1
GENERAL_INFO_DWORDS = 58
COMPLETE = 188


class Tables:
    def __init__(self, file):
        nodes = ElementTree.parse(file).getroot().iter("node")
        self.nodes = {node.get("name"): node for node in nodes}

    def fields(self, name, base=0, prefix=""):
        """The fields of a node: name, first byte of the dword, lowest bit, bits, elements."""
        for field in self.nodes[name].iter("field"):
            dword, bit = field.get("offset").split(".")
            size, bits = field.get("size").split(".")
            at, name = base + int(dword, 16), prefix + field.get("name")
            elements = int(field.get("high_bound", 0)) - int(field.get("low_bound", 0)) + 1
            subnode = field.get("subnode")
            if subnode and elements > 1:
                each = int(size, 16) // elements
                for nth in range(elements):
                    yield from self.fields(subnode, at + nth * each, f"{name}[{nth}].")
            elif subnode and self.nodes[subnode].get("attr_is_union") != "1":
                yield from self.fields(subnode, at, name + ".")
            else:
                yield name, at, int(bit), int(size, 16) * 8 + int(bits), elements

    def decode(self, name, data, base=0):
        found = {}
        for field, at, bit, bits, elements in self.fields(name, base):
            if at + max(4, bits // 8) > min(len(data), COMPLETE):
                continue
            if elements > 1:
                found[field] = data[at : at + bits // 8].hex()
            elif bits <= 32:
                dword = int.from_bytes(data[at : at + 4], "big")
                found[field] = dword >> bit & (1 << bits) - 1
        return found

    def encode(self, name, size, values):
        data = bytearray(size)
        for field, at, bit, bits, _ in self.fields(name):
            value = values.pop(field, 0)
            assert value < 1 << bits, (field, value)
            dword = int.from_bytes(data[at : at + 4], "big") | value << bit
            data[at : at + 4] = dword.to_bytes(4, "big")
        assert not values, values
        return bytes(data)


class Device:
    def __init__(self, library, lid):
        self.library = ctypes.CDLL(library)
        self.library.mopen.restype = ctypes.c_void_p
        self.device = ctypes.c_void_p(self.library.mopen(f"lid-{lid}".encode()))
        assert self.device, f"mopen failed for LID {lid}"

    def general_info(self):
        data = (ctypes.c_uint32 * GENERAL_INFO_DWORDS)()
        status = self.library.mib_get_general_info_gmp(self.device, data, GENERAL_INFO_DWORDS)
        assert status == 0, f"GeneralInfo: {status}"
        # In the order of this machine; before the data there is the VSKey.
        return b"".join(dword.to_bytes(4, "big") for dword in data)[8:]

    def register(self, number, query):
        buffer = (ctypes.c_uint8 * 1024)()
        ctypes.memmove(buffer, query, len(query))
        status = ctypes.c_int(0)
        result = self.library.mib_send_gmp_access_reg_mad(
            self.device, buffer, len(query), number, GET, ctypes.byref(status)
        )
        return None if result or status.value else bytes(buffer)[: len(query)]


def main(library, tables, lid, port):
    tables, device, port = Tables(tables), Device(library, int(lid)), int(port)
    general = device.general_info()
    found = {"GeneralInfo": tables.decode("mgir_ext", general[:0x80])}
    found["GeneralInfo"]["capabilities"] = general[0x80:0x90].hex()
    counters = dict(local_port=port, pnat=1, grp=0x16)
    page = lambda number, **more: dict(local_port=port, pnat=1, page_select=number, **more)
    for name, number, size, query_node, query, data_node, base in [
        ("MGIR", 0x9020, 0xA0, "mgir_ext", {}, "mgir_ext", 0),
        ("MTMP", 0x900A, 0x20, "mtmp_ext", {}, "mtmp_ext", 0),
        ("PPCNT", 0x5008, 0x100, "ppcnt_reg_ext", counters, "phys_layer_stat_cntrs_ext", 8),
        ("PDDR 1", 0x5031, 0x100, "pddr_reg_ext", page(1), "pddr_troubleshooting_page_ext", 8),
        ("PDDR 3", 0x5031, 0x100, "pddr_reg_ext", page(3, module_info_ext=1), "pddr_module_info_ext", 8),
        ("PDDR 6", 0x5031, 0x100, "pddr_reg_ext", page(6), "pddr_link_down_info_page_ext", 8),
        ("MFCR", 0x9001, 0x8, "mfcr_ext", {}, "mfcr_ext", 0),
        ("MFSM", 0x9003, 0x8, "mfsm_ext", dict(tacho=1), "mfsm_ext", 0),
        ("FORE", 0x9007, 0xC, "fore_ext", {}, "fore_ext", 0),
        ("MTBR", 0x900F, 0x18, "mtbr_reg_ext", dict(base_sensor_index=64, num_rec=2), "mtbr_reg_ext", 0),
    ]:
        data = device.register(number, tables.encode(query_node, size, query))
        found[name] = data and tables.decode(data_node, data, base)
    print(json.dumps(found))


main(*sys.argv[1:])
