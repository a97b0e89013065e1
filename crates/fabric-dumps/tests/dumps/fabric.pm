# Running timestamp : 2026-11-01 10:00:00 UTC +0000

-------------------------------------------------------
Port=1 Lid=0x0001 GUID=0x0000000000000a00 Device=54002 Port Name=leaf-1/U1/P1/1/1
-------------------------------------------------------
link_down_counter=0x00000007
symbol_error_counter=0x00000000
port_xmit_data_extended=0x000000012a05f200
port_looping_errors=NA

-------------------------------------------------------
Port=1 Lid=0x0011 GUID=0x0000000000000b11 Device=4129 Port Name=host-1/mlx5_0/P1
-------------------------------------------------------
link_down_counter=0x00000003
symbol_error_counter=0x0000ffff
port_rcv_errors_extended=0x000000000000000c
