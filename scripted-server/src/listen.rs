//! Connections: each in a task of its own, one statement after the other.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::fault::Fault;
use crate::packet::{Wire, bound};
use crate::server::{Outcome, Server, Session};
use crate::sql::{Statement, parse};
use crate::value::Value;

/// How often a connection that waits looks again whether it is free, or has been ended.
const LOOK: Duration = Duration::from_millis(10);
/// How long a server needs that comes back by itself.
const REBOOT: Duration = Duration::from_millis(1_100);

const COM_QUIT: u8 = 1;
const COM_INIT_DB: u8 = 2;
const COM_QUERY: u8 = 3;
const COM_PING: u8 = 14;
const COM_STMT_PREPARE: u8 = 22;
const COM_STMT_EXECUTE: u8 = 23;
const COM_STMT_CLOSE: u8 = 25;
const COM_STMT_RESET: u8 = 26;
const COM_RESET_CONNECTION: u8 = 31;

struct Shared {
    server: Mutex<Server>,
    /// How often it has started; 0 while it is down.
    boots: watch::Sender<u64>,
    statements: Mutex<Vec<String>>,
}

impl Shared {
    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server that listens until this is dropped.
pub struct Listening {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.boots.send_replace(0);
    }
}

impl Listening {
    /// Listens at an address (port 0: any that is free).
    pub async fn start(server: Server, address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            boots: watch::Sender::new(1),
            statements: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            address,
            accepting,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The model, to look at or to change.
    pub fn server(&self) -> MutexGuard<'_, Server> {
        self.shared.server()
    }

    /// Whether it is up.
    pub fn is_up(&self) -> bool {
        *self.shared.boots.borrow() > 0
    }

    /// Starts a server that was shut down, or ends it and starts it again.
    pub fn boot(&self) {
        self.shared.boots.send_replace(0);
        self.server().boot();
        self.shared.boots.send_replace(1);
    }

    /// Statements that came in, without values, oldest first.
    pub fn statements(&self) -> Vec<String> {
        self.shared
            .statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Runs a statement as an administrator at the server's console, in a session of its own.
    pub fn sql(&self, sql: &str) -> Result<Vec<Vec<Value>>, Fault> {
        let statement = parse(sql)?;
        let mut server = self.server();
        let account = server.account().clone();
        server.set_account(crate::Account::all("root", ""));
        let mut session = server.connect();
        let answer = server.execute(&mut session, &statement, &[], true);
        server.disconnect(session.id);
        server.set_account(account);
        Ok(match answer? {
            Outcome::Rows(rows) => rows.rows,
            Outcome::Done(_) | Outcome::Ends(_) | Outcome::Wait(_) => Vec::new(),
        })
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        // While the server is down, whoever comes is turned away.
        if *shared.boots.borrow() == 0 {
            continue;
        }
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let mut boots = shared.boots.subscribe();
            let session = shared.server().connect();
            let id = session.id;
            tokio::select! {
                // The server ends.
                _ = boots.wait_for(|boot| *boot == 0) => {}
                // Somebody ends this connection.
                () = ended(&shared, id) => {}
                _ = converse(&shared, stream, session) => {}
            }
            shared.server().disconnect(id);
        });
    }
}

async fn ended(shared: &Shared, id: u32) {
    while shared.server().alive(id) {
        tokio::time::sleep(LOOK).await;
    }
}

/// 20 bytes that differ with every connection; none is 0.
fn scramble() -> [u8; 20] {
    let mut bytes = [0; 20];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (RandomState::new().hash_one(at) % 94 + 33) as u8;
    }
    bytes
}

struct Prepared {
    statement: Statement,
    placeholders: usize,
    types: Vec<(u8, bool)>,
}

async fn converse(shared: &Arc<Shared>, stream: TcpStream, mut session: Session) -> io::Result<()> {
    let mut wire = Wire::new(stream);
    if !log_in(shared, &mut wire, &mut session).await? {
        return Ok(());
    }
    let mut prepared: BTreeMap<u32, Prepared> = BTreeMap::new();
    let mut next = 0;
    while let Some(packet) = wire.read().await? {
        let Some((command, rest)) = packet.split_first() else {
            return Ok(());
        };
        let text = || String::from_utf8_lossy(rest).into_owned();
        match *command {
            COM_QUIT => return Ok(()),
            COM_PING | COM_RESET_CONNECTION | COM_STMT_RESET => wire.ok(0, 0),
            COM_INIT_DB => {
                let statement = Statement::Use(text());
                answer(shared, &mut wire, &mut session, &statement, &[], false).await;
            }
            COM_QUERY => {
                let sql = text();
                note(shared, &sql);
                match parse(&sql) {
                    Ok(statement) => {
                        answer(shared, &mut wire, &mut session, &statement, &[], false).await;
                    }
                    Err(fault) => wire.fault(&fault),
                }
            }
            COM_STMT_PREPARE => {
                let sql = text();
                note(shared, &sql);
                match parse(&sql) {
                    Ok(statement) => {
                        next += 1;
                        let placeholders = placeholders(&sql);
                        wire.prepared(next, &columns(&statement), placeholders);
                        prepared.insert(
                            next,
                            Prepared {
                                statement,
                                placeholders,
                                types: Vec::new(),
                            },
                        );
                    }
                    Err(fault) => wire.fault(&fault),
                }
            }
            COM_STMT_EXECUTE => {
                let id = number(rest);
                match (prepared.get_mut(&id), rest.get(9..)) {
                    (Some(one), Some(values)) => {
                        let values = bound(values, one.placeholders, &mut one.types)?;
                        let statement = one.statement.clone();
                        answer(shared, &mut wire, &mut session, &statement, &values, true).await;
                    }
                    _ => wire.fault(&Fault::new(
                        1243,
                        "HY000",
                        format!("Unknown prepared statement handler ({id}) given to mysqld_stmt_execute"),
                    )),
                }
            }
            COM_STMT_CLOSE => {
                prepared.remove(&number(rest));
                continue;
            }
            _ => wire.fault(&Fault::new(1047, "08S01", "Unknown command")),
        }
        wire.flush().await?;
    }
    Ok(())
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk::<4>()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Placeholders outside of quotes and comments. What could not be parsed does not come here.
fn placeholders(sql: &str) -> usize {
    let mut quote = None;
    let mut count = 0;
    for character in sql.chars() {
        match (quote, character) {
            (None, '\'' | '"' | '`') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, '?') => count += 1,
            _ => {}
        }
    }
    count
}

fn columns(statement: &Statement) -> Vec<String> {
    match statement {
        Statement::Select(select) => select.items.iter().map(|(_, name)| name.clone()).collect(),
        _ => Vec::new(),
    }
}

fn note(shared: &Shared, sql: &str) {
    shared
        .statements
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(sql.to_owned());
}

async fn log_in(shared: &Shared, wire: &mut Wire, session: &mut Session) -> io::Result<bool> {
    let scramble = scramble();
    let (dialect, account) = {
        let server = shared.server();
        (server.dialect(), server.account().clone())
    };
    let method = dialect.authentication;
    let new = dialect.numbers >= (5, 7, 5);
    wire.greet(dialect.version, session.id, &scramble, method.plugin(), new)
        .await?;
    let Some(packet) = wire.read().await? else {
        return Ok(false);
    };
    let login = wire.login(&packet)?;
    let mut answer = login.answer;
    if login.plugin != method.plugin() {
        wire.switch(method.plugin(), &scramble);
        wire.flush().await?;
        let Some(packet) = wire.read().await? else {
            return Ok(false);
        };
        answer = packet;
    }
    if login.user != account.user || !method.proves(&account.password, &scramble, &answer) {
        let using = if answer.is_empty() { "NO" } else { "YES" };
        wire.fault(&Fault::new(
            1045,
            "28000",
            format!(
                "Access denied for user '{}'@'localhost' (using password: {using})",
                login.user
            ),
        ));
        wire.flush().await?;
        return Ok(false);
    }
    if method == crate::dialect::Authentication::CachingSha2 && !answer.is_empty() {
        wire.fast();
    }
    session.schema = login.schema;
    wire.ok(0, 0);
    wire.flush().await?;
    Ok(true)
}

async fn answer(
    shared: &Arc<Shared>,
    wire: &mut Wire,
    session: &mut Session,
    statement: &Statement,
    values: &[Value],
    binary: bool,
) {
    let began = Instant::now();
    let mut last = false;
    loop {
        let outcome = shared.server().execute(session, statement, values, last);
        match outcome {
            Ok(Outcome::Wait(seconds)) => {
                tokio::time::sleep(LOOK).await;
                last = began.elapsed().as_secs_f64() >= seconds;
            }
            Ok(Outcome::Done(changed)) => return wire.ok(changed, session.warnings.len()),
            Ok(Outcome::Rows(rows)) => return wire.rows(&rows, binary, session.warnings.len()),
            Ok(Outcome::Ends(comes_back)) => {
                wire.ok(0, 0);
                let _ = wire.flush().await;
                shared.boots.send_replace(0);
                if comes_back {
                    let shared = Arc::clone(shared);
                    tokio::spawn(async move {
                        tokio::time::sleep(REBOOT).await;
                        shared.server().boot();
                        shared.boots.send_replace(1);
                    });
                }
                return;
            }
            Err(fault) => return wire.fault(&fault),
        }
    }
}
