-- An in-memory database: inserts, an index, joins, grouping, text, deletes. ROWS is replaced by a number.
PRAGMA journal_mode = OFF;
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, price REAL, note TEXT);
INSERT INTO customer
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ROWS / 10)
    SELECT i, 'customer ' || i, 'city ' || (i * 7919 % 97) FROM n;
INSERT INTO orders
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ROWS)
    SELECT i, i * 7919 % (ROWS / 10) + 1, (i * 104729 % 10007) / 100.0, printf('%.*c', i % 60, 'x') || i FROM n;
CREATE INDEX by_customer ON orders (customer);
SELECT city, count(*), round(sum(price), 2) FROM orders JOIN customer ON customer.id = orders.customer
    GROUP BY city ORDER BY 3 DESC LIMIT 5;
SELECT count(*), sum(length(words)) FROM
    (SELECT group_concat(upper(substr(note, 1, 20)), ' ') AS words FROM orders GROUP BY customer);
SELECT count(DISTINCT replace(note, 'x', 'yy')) FROM orders;
UPDATE orders SET note = note || ' changed' WHERE id % 3 = 0;
DELETE FROM orders WHERE id % 2 = 0;
SELECT count(*), max(length(note)) FROM orders WHERE note LIKE '%9%changed';
