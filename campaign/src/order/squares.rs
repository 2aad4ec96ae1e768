//! Williams squares: Latin squares in which every symbol follows every other equally often (Williams 1949).
//! An even number of symbols needs one square, an odd number a square and its mirror image.

/// The square or the two squares for `symbols` symbols, as rows of the numbers from 0. One symbol: one row.
pub(super) fn williams(symbols: usize) -> Vec<Vec<Vec<usize>>> {
    if symbols == 0 {
        return Vec::new();
    }
    let first = zigzag(symbols);
    let square: Vec<Vec<usize>> = (0..symbols)
        .map(|shift| first.iter().map(|symbol| (symbol + shift) % symbols).collect())
        .collect();
    if symbols == 1 || symbols.is_multiple_of(2) {
        return vec![square];
    }
    let mirror = square.iter().map(|row| reversed(row)).collect();
    vec![square, mirror]
}

/// The rows of the square or squares, each with its reversal. With an even number of symbols the reversal of a
/// row is itself a row of the square.
pub(super) fn reversal_pairs(symbols: usize) -> Vec<Vec<Vec<usize>>> {
    let squares = williams(symbols);
    let Some(square) = squares.first() else {
        return Vec::new();
    };
    if symbols == 1 {
        return vec![square.clone()];
    }
    let rows = if symbols.is_multiple_of(2) {
        symbols / 2
    } else {
        symbols
    };
    square
        .iter()
        .take(rows)
        .map(|row| vec![row.clone(), reversed(row)])
        .collect()
}

fn reversed(row: &[usize]) -> Vec<usize> {
    row.iter().rev().copied().collect()
}

/// 0, 1, n-1, 2, n-2, …: the differences of neighbours are all distinct when n is even.
fn zigzag(symbols: usize) -> Vec<usize> {
    (0..symbols)
        .map(|place| {
            if place % 2 == 1 {
                place.div_ceil(2)
            } else {
                (symbols - place / 2) % symbols
            }
        })
        .collect()
}
