//! From tokens to a tree.

use super::token::{Token, tokens};
use super::{Assignment, Expression, Join, Name, Operator, Put, Scope, Select, Shown, Statement};
use crate::fault::Fault;
use crate::value::Value;

type Result<T> = std::result::Result<T, Fault>;

/// Reads one statement.
pub(crate) fn parse(sql: &str) -> Result<Statement> {
    let mut parser = Parser {
        tokens: tokens(sql)?,
        at: 0,
        placeholders: 0,
    };
    let statement = parser.statement()?;
    parser.sign(";");
    match parser.tokens.get(parser.at) {
        None => Ok(statement),
        Some(_) => Err(parser.unexpected()),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    placeholders: usize,
}

impl Parser {
    fn unexpected(&self) -> Fault {
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        let rest: Vec<String> = rest
            .iter()
            .map(|token| match token {
                Token::Word(text) | Token::Number(text) => text.clone(),
                Token::Quoted(text) => format!("`{text}`"),
                Token::Text(text) => format!("'{text}'"),
                Token::Sign(sign) => (*sign).to_owned(),
            })
            .collect();
        Fault::syntax(&rest.join(" "))
    }

    fn sees(&self, ahead: usize, word: &str) -> bool {
        matches!(self.tokens.get(self.at + ahead), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word))
    }

    /// Takes these words if they come next.
    fn word(&mut self, words: &str) -> bool {
        let words: Vec<&str> = words.split(' ').collect();
        let there = words.iter().enumerate().all(|(i, word)| self.sees(i, word));
        if there {
            self.at += words.len();
        }
        there
    }

    fn expect(&mut self, words: &str) -> Result<()> {
        if self.word(words) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn sign(&mut self, sign: &str) -> bool {
        let there = matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(there);
        there
    }

    fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.sign(sign) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn identifier(&mut self) -> Result<String> {
        match self.tokens.get(self.at) {
            Some(Token::Word(name) | Token::Quoted(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn text(&mut self) -> Result<String> {
        match self.tokens.get(self.at) {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn name(&mut self) -> Result<Name> {
        let first = self.identifier()?;
        if self.sign(".") {
            return Ok(Name {
                schema: Some(first),
                table: self.identifier()?,
            });
        }
        Ok(Name {
            schema: None,
            table: first,
        })
    }

    /// A variable's name: the parts of a component's are joined.
    fn variable(&mut self) -> Result<String> {
        let mut name = self.identifier()?;
        while self.sign(".") {
            name = format!("{name}.{}", self.identifier()?);
        }
        Ok(name.to_lowercase())
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.sign(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn statement(&mut self) -> Result<Statement> {
        if self.sees(0, "SELECT") {
            return Ok(Statement::Select(self.select()?));
        }
        if self.word("SHOW") {
            return self.show();
        }
        if self.word("SET") {
            return self.set();
        }
        if self.word("RESET PERSIST") {
            let lenient = self.word("IF EXISTS");
            let name = (self.at < self.tokens.len())
                .then(|| self.variable())
                .transpose()?;
            return Ok(Statement::ResetPersist(name, lenient));
        }
        if self.word("INSTALL PLUGIN") {
            let name = self.identifier()?;
            self.expect("SONAME")?;
            return Ok(Statement::InstallPlugin(name, self.text()?));
        }
        if self.word("UNINSTALL PLUGIN") {
            return Ok(Statement::UninstallPlugin(self.identifier()?));
        }
        if self.word("INSTALL COMPONENT") {
            return Ok(Statement::InstallComponent(self.text()?));
        }
        if self.word("UNINSTALL COMPONENT") {
            return Ok(Statement::UninstallComponent(self.text()?));
        }
        if self.word("CREATE DATABASE") || self.word("CREATE SCHEMA") {
            let lenient = self.word("IF NOT EXISTS");
            return Ok(Statement::CreateDatabase(self.identifier()?, lenient));
        }
        if self.word("DROP DATABASE") || self.word("DROP SCHEMA") {
            let lenient = self.word("IF EXISTS");
            return Ok(Statement::DropDatabase(self.identifier()?, lenient));
        }
        if self.word("CREATE TABLE") {
            return self.create_table();
        }
        for (words, put) in [
            ("INSERT IGNORE INTO", Put::Ignore),
            ("INSERT INTO", Put::Insert),
            ("REPLACE INTO", Put::Replace),
        ] {
            if self.word(words) {
                return self.put(put);
            }
        }
        if self.word("UPDATE") {
            let table = self.name()?;
            self.expect("SET")?;
            let changes = self.list(|p| {
                let column = p.identifier()?.to_lowercase();
                p.expect_sign("=")?;
                Ok((column, p.expression()?))
            })?;
            return Ok(Statement::Update(table, changes, self.condition()?));
        }
        if self.word("DELETE FROM") {
            let table = self.name()?;
            return Ok(Statement::Delete(table, self.condition()?));
        }
        if self.word("KILL") {
            let _ = self.word("CONNECTION") || self.word("QUERY");
            return Ok(Statement::Kill(self.expression()?));
        }
        if self.word("ANALYZE TABLE") {
            return Ok(Statement::Analyze(self.name()?));
        }
        if self.word("DO") {
            return Ok(Statement::Do(self.list(Self::expression)?));
        }
        if self.word("USE") {
            return Ok(Statement::Use(self.identifier()?));
        }
        if self.word("RESTART") {
            return Ok(Statement::Restart);
        }
        if self.word("SHUTDOWN") {
            return Ok(Statement::Shutdown);
        }
        for words in ["FLUSH", "BEGIN", "COMMIT", "ROLLBACK", "START TRANSACTION"] {
            if self.word(words) {
                self.at = self.tokens.len();
                return Ok(Statement::Nothing);
            }
        }
        Err(self.unexpected())
    }

    fn condition(&mut self) -> Result<Option<Expression>> {
        if self.word("WHERE") {
            Ok(Some(self.expression()?))
        } else {
            Ok(None)
        }
    }

    fn select(&mut self) -> Result<Select> {
        self.expect("SELECT")?;
        let distinct = self.word("DISTINCT");
        let items = self.list(|p| {
            let from = p.at;
            let item = p.expression()?;
            let shown: String = p.tokens[from..p.at].iter().map(written).collect();
            let name = if p.word("AS") { p.identifier()? } else { shown };
            Ok((item, name))
        })?;
        let mut select = Select {
            distinct,
            items,
            from: None,
            joins: Vec::new(),
            condition: None,
            order: Vec::new(),
        };
        if !self.word("FROM") {
            return Ok(select);
        }
        select.from = Some(self.aliased()?);
        loop {
            let left = self.word("LEFT JOIN");
            if !left && !self.word("JOIN") {
                break;
            }
            let table = self.aliased()?;
            self.expect("USING")?;
            self.expect_sign("(")?;
            let using = self.identifier()?.to_lowercase();
            self.expect_sign(")")?;
            select.joins.push(Join { table, left, using });
        }
        select.condition = self.condition()?;
        // Which index serves the rows changes nothing here.
        if self.word("FORCE INDEX") {
            self.expect_sign("(")?;
            self.identifier()?;
            self.expect_sign(")")?;
        }
        if self.word("ORDER BY") {
            select.order = self.list(|p| {
                let by = p.expression()?;
                let descending = p.word("DESC");
                let _ = p.word("ASC");
                Ok((by, descending))
            })?;
        }
        Ok(select)
    }

    fn aliased(&mut self) -> Result<Name> {
        let table = self.name()?;
        let ends = ["LEFT", "JOIN", "USING", "WHERE", "ORDER", "FORCE"];
        let _ = self.word("AS");
        if matches!(self.tokens.get(self.at), Some(Token::Word(w)) if !ends.iter().any(|e| w.eq_ignore_ascii_case(e)))
        {
            self.at += 1;
        }
        Ok(table)
    }

    fn show(&mut self) -> Result<Statement> {
        let shown = [
            ("GLOBAL VARIABLES", Shown::GlobalVariables),
            ("SESSION VARIABLES", Shown::SessionVariables),
            ("VARIABLES", Shown::SessionVariables),
            ("GLOBAL STATUS", Shown::Status),
            ("STATUS", Shown::Status),
            ("DATABASES", Shown::Databases),
            ("WARNINGS", Shown::Warnings),
            ("GRANTS", Shown::Grants),
            ("REPLICA STATUS", Shown::ReplicaStatus),
            ("SLAVE STATUS", Shown::SlaveStatus),
        ]
        .into_iter()
        .find_map(|(words, shown)| self.word(words).then_some(shown))
        .ok_or_else(|| self.unexpected())?;
        let filter = if self.word("LIKE") {
            let name = Expression::Column("variable_name".to_owned());
            let pattern = Expression::Literal(Value::Text(self.text()?));
            Some(Expression::Binary(
                Operator::Like,
                Box::new(name),
                Box::new(pattern),
            ))
        } else {
            self.condition()?
        };
        Ok(Statement::Show(shown, filter))
    }

    fn set(&mut self) -> Result<Statement> {
        let mut scope = Scope::Session;
        let assignments = self.list(|p| {
            for (words, said) in [
                ("GLOBAL", Scope::Global),
                ("SESSION", Scope::Session),
                ("LOCAL", Scope::Session),
                ("PERSIST_ONLY", Scope::PersistOnly),
                ("PERSIST", Scope::Persist),
            ] {
                if p.word(words) {
                    scope = said;
                }
            }
            if p.sign("@@") {
                for (words, said) in [("GLOBAL", Scope::Global), ("SESSION", Scope::Session)] {
                    if p.word(words) {
                        scope = said;
                        p.expect_sign(".")?;
                    }
                }
            }
            let name = p.variable()?;
            if !p.sign("=") {
                p.expect_sign(":=")?;
            }
            let value = if p.word("DEFAULT") {
                None
            } else {
                // ON and OFF are words, not columns.
                let value = p.expression()?;
                Some(match value {
                    Expression::Column(word) => Expression::Literal(Value::Text(word.to_uppercase())),
                    other => other,
                })
            };
            Ok(Assignment { scope, name, value })
        })?;
        Ok(Statement::Set(assignments))
    }

    fn create_table(&mut self) -> Result<Statement> {
        let lenient = self.word("IF NOT EXISTS");
        let table = self.name()?;
        self.expect_sign("(")?;
        let (mut columns, mut primary) = (Vec::new(), None);
        loop {
            if self.word("PRIMARY KEY") {
                self.expect_sign("(")?;
                let key = self.identifier()?.to_lowercase();
                primary = columns.iter().position(|c| *c == key);
                self.expect_sign(")")?;
            } else {
                let key = self.sees(0, "KEY") || self.sees(0, "INDEX");
                let column = self.identifier()?.to_lowercase();
                if !key {
                    columns.push(column);
                }
            }
            // The rest of a definition: types, defaults.
            let mut depth = 0_u32;
            loop {
                if self.word("PRIMARY KEY") {
                    primary = columns.len().checked_sub(1);
                    continue;
                }
                match self.tokens.get(self.at) {
                    None => return Err(self.unexpected()),
                    Some(Token::Sign("(")) => depth += 1,
                    Some(Token::Sign(")" | ",")) if depth == 0 => break,
                    Some(Token::Sign(")")) => depth -= 1,
                    Some(_) => {}
                }
                self.at += 1;
            }
            if !self.sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        // Options of the table.
        self.at = self.tokens.len();
        Ok(Statement::CreateTable(table, lenient, columns, primary))
    }

    fn put(&mut self, put: Put) -> Result<Statement> {
        let table = self.name()?;
        let mut columns = Vec::new();
        if self.sign("(") {
            columns = self.list(|p| Ok(p.identifier()?.to_lowercase()))?;
            self.expect_sign(")")?;
        }
        if self.sees(0, "SELECT") {
            return Ok(Statement::PutSelected(put, table, columns, self.select()?));
        }
        self.expect("VALUES")?;
        let rows = self.list(|p| {
            p.expect_sign("(")?;
            let row = p.list(Self::expression)?;
            p.expect_sign(")")?;
            Ok(row)
        })?;
        Ok(Statement::Put(put, table, columns, rows))
    }

    fn expression(&mut self) -> Result<Expression> {
        self.level(0)
    }

    /// Operators from the loosest to the tightest.
    fn level(&mut self, level: usize) -> Result<Expression> {
        if level == 2 && self.word("NOT") {
            return Ok(Expression::Not(Box::new(self.level(2)?)));
        }
        if level == 5 {
            return self.primary();
        }
        let mut left = self.level(level + 1)?;
        loop {
            if level == 3 {
                let not = self.word("NOT IN");
                if not || self.word("IN") {
                    self.expect_sign("(")?;
                    let all = self.list(Self::expression)?;
                    self.expect_sign(")")?;
                    left = Expression::In(Box::new(left), all);
                    if not {
                        left = Expression::Not(Box::new(left));
                    }
                    continue;
                }
                let not = self.word("IS NOT NULL");
                if not || self.word("IS NULL") {
                    left = Expression::IsNull(Box::new(left));
                    if not {
                        left = Expression::Not(Box::new(left));
                    }
                    continue;
                }
            }
            let Some(operator) = self.operator(level) else {
                return Ok(left);
            };
            let right = self.level(level + 1)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
    }

    fn operator(&mut self, level: usize) -> Option<Operator> {
        match level {
            0 => self.word("OR").then_some(Operator::Or),
            1 => self.word("AND").then_some(Operator::And),
            3 => {
                if self.word("LIKE") {
                    return Some(Operator::Like);
                }
                [
                    ("=", Operator::Equal),
                    ("<>", Operator::Unequal),
                    ("!=", Operator::Unequal),
                    ("<=", Operator::AtMost),
                    (">=", Operator::AtLeast),
                    ("<", Operator::Less),
                    (">", Operator::Greater),
                ]
                .into_iter()
                .find_map(|(sign, operator)| self.sign(sign).then_some(operator))
            }
            4 => [("+", Operator::Plus), ("-", Operator::Minus)]
                .into_iter()
                .find_map(|(sign, operator)| self.sign(sign).then_some(operator)),
            _ => None,
        }
    }

    fn primary(&mut self) -> Result<Expression> {
        if self.sign("(") {
            let inside = self.expression()?;
            self.expect_sign(")")?;
            return Ok(inside);
        }
        if self.sign("*") {
            return Ok(Expression::All);
        }
        if self.sign("?") {
            self.placeholders += 1;
            return Ok(Expression::Placeholder(self.placeholders - 1));
        }
        if self.sign("-") {
            let zero = Expression::Literal(Value::Integer(0));
            let number = self.primary()?;
            return Ok(Expression::Binary(
                Operator::Minus,
                Box::new(zero),
                Box::new(number),
            ));
        }
        if self.sign("@@") {
            let scope = [("GLOBAL", Scope::Global), ("SESSION", Scope::Session)]
                .into_iter()
                .find_map(|(word, scope)| self.word(word).then_some(scope));
            if scope.is_some() {
                self.expect_sign(".")?;
            }
            return Ok(Expression::Variable(scope, self.variable()?));
        }
        if self.sign("@") {
            self.identifier()?;
            return Ok(Expression::UserVariable);
        }
        match self.tokens.get(self.at).cloned() {
            Some(Token::Text(text)) => {
                self.at += 1;
                Ok(Expression::Literal(Value::Text(text)))
            }
            Some(Token::Number(number)) => {
                self.at += 1;
                let whole = number.parse().map(Value::Integer);
                let real = || number.parse().map(Value::Real).map_err(|_| self.unexpected());
                Ok(Expression::Literal(whole.or_else(|_| real())?))
            }
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("NULL") => {
                self.at += 1;
                Ok(Expression::Literal(Value::Null))
            }
            Some(Token::Word(_) | Token::Quoted(_)) => {
                let mut name = self.identifier()?;
                if self.sign("(") {
                    return self.call(&name);
                }
                while self.sign(".") {
                    name = self.identifier()?;
                }
                Ok(Expression::Column(name.to_lowercase()))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn call(&mut self, name: &str) -> Result<Expression> {
        let name = name.to_uppercase();
        if self.sign(")") {
            return Ok(Expression::Call(name, Vec::new()));
        }
        let arguments = self.list(Self::expression)?;
        // CAST(… AS type) and CONVERT(… USING character set): what the value is does not change.
        if self.word("AS") || self.word("USING") {
            self.identifier()?;
        }
        self.expect_sign(")")?;
        Ok(Expression::Call(name, arguments))
    }
}

/// A token as it was written, for the name of a column.
fn written(token: &Token) -> String {
    match token {
        Token::Word(text) | Token::Number(text) | Token::Quoted(text) | Token::Text(text) => text.clone(),
        Token::Sign(sign) => (*sign).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_administration_are_read() {
        for sql in [
            "SET GLOBAL `max_connections` = ?, GLOBAL max_connections = 'not a number'",
            "SET SESSION sql_mode = '', autocommit = 1, wait_timeout = 60",
            "SET PERSIST max_connections = 3, PERSIST_ONLY innodb_flush_method = 'fsync'",
            "SET GLOBAL audit_log_filter.disable = ON",
            "RESET PERSIST IF EXISTS max_connections",
            "SELECT /* word */ 1",
            "SELECT @@version, @@GLOBAL.server_uuid, UNIX_TIMESTAMP()",
            "SELECT CAST(SUM(A + B) AS SIGNED) FROM information_schema.TABLES WHERE S = ?",
            "SELECT i.V, COALESCE('', '') FROM p.a i LEFT JOIN p.g g USING (V) ",
            "SELECT DISTINCT A, B FROM s.T WHERE A = ? AND B = 'BTREE' ORDER BY 1, B = 'PRIMARY' DESC, 2",
            "UPDATE m.fence SET a = ?, b = 0 WHERE id = 1 AND (e < ? OR (h = ? AND e = ? AND s <> 2))",
            "REPLACE INTO m.d (a, b) SELECT ?, ? FROM m.fence WHERE id = 1",
            "INSERT IGNORE INTO m.f (id, u) VALUES (1, UUID())",
            "SELECT COUNT(*) FROM `a`.`b`",
            "DO RELEASE_LOCK('x')",
            "KILL CONNECTION 4",
        ] {
            parse(sql).unwrap_or_else(|fault| panic!("{sql}: {fault}"));
        }
    }

    #[test]
    fn a_key_is_found_wherever_it_is_said() {
        let sql = "CREATE TABLE IF NOT EXISTS m.f (id TINYINT NOT NULL PRIMARY KEY, u CHAR(36) CHARACTER SET ascii, t \
                   TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6)) ENGINE=InnoDB";
        let Statement::CreateTable(_, true, columns, primary) = parse(sql).unwrap() else {
            panic!("no table");
        };
        assert_eq!((columns.len(), primary), (3, Some(0)));
    }

    #[test]
    fn what_is_no_statement_is_refused_with_1064() {
        assert_eq!(parse("SELEC 1").unwrap_err().code, 1064);
        assert_eq!(parse("SELECT 1 1 1").unwrap_err().code, 1064);
    }
}
