//! A server that speaks the MySQL client/server protocol and answers as the manuals of servers say that cannot be had
//! here: what distinguishes them is data ([`dialect`]), what they do is one model ([`Server`]). For tests.

mod authentication;
pub mod dialect;
mod fault;
mod listen;
mod packet;
mod server;
mod sql;
mod value;

pub use fault::Fault;
pub use listen::Listening;
pub use server::{Account, Server};
pub use value::Value;
