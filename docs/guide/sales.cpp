// Adds up what was sold of each product: sales FILE.csv, with lines of day, product, count and price.
// It needs far more memory than the file has: docs/guide.md finds out when, and for what.
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using Row = std::vector<std::string>;

static Row split(const std::string &line) {
    Row row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    return row;
}

static std::vector<Row> read_rows(std::istream &input) {
    std::vector<Row> rows;
    for (std::string line; std::getline(input, line);) rows.push_back(split(line));
    return rows;
}

static void add(std::map<std::string, double> &sums, const Row &row) {
    sums[row[1]] += std::stod(row[2]) * std::stod(row[3]);
}

int main(int, char **arguments) {
    std::ifstream input(arguments[1]);
    std::map<std::string, double> sums;
#ifdef FIXED
    for (std::string line; std::getline(input, line);) add(sums, split(line));
#else
    for (const Row &row : read_rows(input)) add(sums, row);
#endif
    for (const auto &[product, sum] : sums) std::cout << product << ' ' << sum << '\n';
}
