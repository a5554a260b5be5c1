// Writes an access log of a million requests. It allocates several times for each: docs/guide.md finds out for what,
// though nothing of it is live for longer than a moment.
#include <fstream>
#include <sstream>
#include <string>

struct Request {
    std::string client, path;
    int status;
};

static std::string quote(const std::string &text) {
    return "\"" + text + "\"";
}

static std::string line_of(const Request &request) {
    std::ostringstream line;
    line << quote(request.client) << " GET " << quote(request.path) << " " << request.status;
    return line.str();
}

#ifdef FIXED
static void write(std::ostream &log, const Request &request) {
    log << '"' << request.client << "\" GET \"" << request.path << "\" " << request.status << '\n';
}
#else
static void write(std::ostream &log, const Request &request) {
    log << line_of(request) << '\n';
}
#endif

int main(int, char **arguments) {
    std::ofstream log(arguments[1]);
    Request request{"2001:db8:0:0:1:2:3:4", "/catalogue/spring/shoes/index.html", 200};
    for (int i = 0; i < 1000000; i++) {
        request.status = i % 97 ? 200 : 404;
        write(log, request);
    }
}
