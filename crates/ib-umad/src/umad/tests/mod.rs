//! Made-up hosts: which descriptors are opened, and what passes through each.

mod fake;
mod pairing;
mod sides;
