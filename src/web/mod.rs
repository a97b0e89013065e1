//! Who is told: HTTP.

pub mod api;
pub mod body;
pub mod exposition;
pub mod landing;
pub mod listen;
pub mod negotiate;
pub mod server;
