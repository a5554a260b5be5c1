"""Real programs that are run plainly and recorded: what they print, and how they end, must be the same.

Each one is a bash script. It runs in an empty folder with $PORT, a free port, and prints nothing that depends on time,
process numbers or addresses. `wait_for COMMAND` repeats a command until it succeeds (common.sh).
"""

from dataclasses import dataclass, field


@dataclass
class Program:
    """`packages` are Debian's; `cheap` ones are part of ./dev test where they are installed."""

    name: str
    packages: str
    script: str
    cheap: bool = False
    whole: float = 0.99  # the share of samples that must have a whole stack
    why_less: str = ""  # the reason if `whole` is below 0.99
    files: dict = field(default_factory=dict)  # name: contents, made before the script runs


PROGRAMS = [
    # ---- servers ----
    Program("postgresql", "postgresql", r"""
        bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
        mkdir db socket; chown postgres . db socket; chmod 755 .
        as() { setpriv --reuid postgres --regid postgres --clear-groups env HOME="$PWD" "$@"; }
        as "$bin/initdb" -D db -A trust --no-sync > initdb.log 2>&1; echo "initdb $?"
        as "$bin/postgres" -D db -k "$PWD/socket" -c listen_addresses= > server.log 2>&1 & server=$!
        wait_for as "$bin/pg_isready" -q -h "$PWD/socket"
        sql() { as "$bin/psql" -h "$PWD/socket" -qAt postgres "$@"; }
        sql -c "create table t as select i, md5(i::text) m from generate_series(1, 20000) i"
        sql -c "create index on t (m)" -c "select count(*), min(m), max(m) from t" \
            -c "select a.i % 7, count(*), max(b.m) from t a join t b on a.m = b.m group by 1 order by 1"
        as "$bin/pgbench" -i -q -h "$PWD/socket" postgres > /dev/null 2>&1; echo "pgbench -i $?"
        as "$bin/pgbench" -n -c 4 -t 50 -h "$PWD/socket" postgres | grep 'actually processed'
        kill -TERM $server; wait $server; echo "server $?"
        """),
    Program("mariadb", "mariadb-server", r"""
        mkdir data
        mariadb-install-db --no-defaults --user=root --datadir="$PWD/data" --auth-root-authentication-method=normal \
            > install.log 2>&1; echo "install $?"
        mariadbd --no-defaults --user=root --datadir="$PWD/data" --socket="$PWD/s" --skip-networking \
            --pid-file="$PWD/pid" > server.log 2>&1 & server=$!
        wait_for mariadb-admin --no-defaults -u root -S s ping --silent
        mariadb --no-defaults -u root -S s -N -e "
            create database d; use d; create table t (i int primary key, m char(32));
            insert into t select seq, md5(seq) from seq_1_to_20000; create index m on t (m);
            select count(*), min(m), max(m) from t;
            select a.i % 7, count(*), max(b.m) from t a join t b on a.m = b.m group by 1 order by 1"
        mariadb-admin --no-defaults -u root -S s shutdown; wait $server; echo "server $?"
        """),
    Program("nginx", "nginx-light curl", r"""
        mkdir www logs; for i in $(seq 50); do head -c $((i * 700)) /dev/zero | tr '\0' x > www/$i; done
        printf '%s\n' "daemon off; master_process on; worker_processes 2; pid $PWD/pid; error_log $PWD/logs/error;" \
            "user root; events {} http { access_log off; client_body_temp_path $PWD/b; proxy_temp_path $PWD/p;" \
            "fastcgi_temp_path $PWD/f; uwsgi_temp_path $PWD/u; scgi_temp_path $PWD/c; gzip on; gzip_types *;" \
            "server { listen 127.0.0.1:$PORT; root $PWD/www; } }" > conf
        nginx -p "$PWD" -c "$PWD/conf" -e logs/error & server=$!
        wait_for curl -sf -o /dev/null http://127.0.0.1:$PORT/1
        for i in $(seq 50); do curl -s --compressed http://127.0.0.1:$PORT/$i; done | md5sum
        curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$PORT/none
        kill -QUIT $server; wait $server; echo "server $?"
        """, cheap=True),
    Program("apache", "apache2-bin curl", r"""
        m=/usr/lib/apache2/modules; mkdir www; echo hello > www/file
        printf '%s\n' "ServerRoot $PWD" "ServerName x" "Listen 127.0.0.1:$PORT" "PidFile $PWD/pid" \
            "ErrorLog $PWD/error" \
            "LoadModule mpm_event_module $m/mod_mpm_event.so" "LoadModule authz_core_module $m/mod_authz_core.so" \
            "LoadModule dir_module $m/mod_dir.so" "LoadModule autoindex_module $m/mod_autoindex.so" \
            "DocumentRoot $PWD/www" "DefaultRuntimeDir $PWD" > conf
        apache2 -X -f "$PWD/conf" & server=$!
        wait_for curl -sf -o /dev/null http://127.0.0.1:$PORT/file
        for i in $(seq 40); do curl -s http://127.0.0.1:$PORT/file; done | md5sum
        kill -TERM $server; wait $server; echo "server $?"
        """),
    Program("lighttpd", "lighttpd curl", r"""
        mkdir www; echo hello > www/file
        printf '%s\n' "server.document-root = \"$PWD/www\"" "server.port = $PORT" 'server.bind = "127.0.0.1"' > conf
        lighttpd -D -f conf > log 2>&1 & server=$!
        wait_for curl -sf -o /dev/null http://127.0.0.1:$PORT/file
        for i in $(seq 40); do curl -s http://127.0.0.1:$PORT/file; done | md5sum
        kill -TERM $server; wait $server; echo "server $?"
        """, cheap=True),
    Program("memcached", "memcached", r"""
        memcached -u root -l 127.0.0.1 -p $PORT -t 2 & server=$!
        wait_for bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT"
        exec 3<>/dev/tcp/127.0.0.1/$PORT
        for i in $(seq 500); do printf 'set k%d 0 0 5\r\nabcde\r\n' $i; done >&3
        for i in $(seq 500); do read -r line <&3; echo "$line"; done | sort | uniq -c
        printf 'get k7 k500\r\n' >&3; for i in 1 2 3 4 5; do read -r line <&3; echo "$line"; done
        kill $server; wait $server; echo "server $?"
        """, cheap=True),
    Program("mosquitto", "mosquitto mosquitto-clients", r"""
        printf 'listener %s 127.0.0.1\nallow_anonymous true\npersistence false\n' $PORT > conf
        mosquitto -c conf > log 2>&1 & server=$!
        wait_for mosquitto_pub -h 127.0.0.1 -p $PORT -t ready -m x -r
        for i in $(seq 100); do echo "message $i"; done | mosquitto_pub -h 127.0.0.1 -p $PORT -t t -l -q 1
        mosquitto_sub -h 127.0.0.1 -p $PORT -t ready -C 1
        kill $server; wait $server; echo "server $?"
        """),
    Program("haproxy", "haproxy curl", r"""
        printf '%s\n' 'defaults' ' mode http' ' timeout client 9s' ' timeout server 9s' ' timeout connect 9s' \
            'frontend f' " bind 127.0.0.1:$PORT" \
            ' http-request return status 200 content-type text/plain string hello' > conf
        haproxy -db -f conf > log 2>&1 & server=$!
        wait_for curl -sf -o /dev/null http://127.0.0.1:$PORT/
        for i in $(seq 40); do curl -s http://127.0.0.1:$PORT/; done | md5sum
        kill -USR1 $server; wait $server; echo "server $?"
        """),
    Program("openssl-server", "openssl", r"""
        openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=x -days 9 2> /dev/null
        openssl s_server -accept 127.0.0.1:$PORT -key key -cert cert -www -quiet > log 2>&1 & server=$!
        wait_for bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT"
        for i in $(seq 5); do
            printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -connect 127.0.0.1:$PORT -quiet 2> /dev/null | head -1
        done
        kill $server; wait $server; echo "server $?"
        """, cheap=True),
    # ---- browsers, offices, toolkits ----
    Program("chromium", "chromium", r"""
        printf '<p id=p></p><script>let a = []; for (let i = 0; i < 1e5; i++) a.push("x" + i);
            p.textContent = a.length + a[777]</script>' > page.html
        chromium --headless=old --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --dump-dom \
            "file://$PWD/page.html" 2> /dev/null; echo "status $?"
        """),
    Program("libreoffice", "libreoffice-writer-nogui", r"""
        for i in $(seq 300); do echo "Paragraph $i with some words in it."; echo; done > text.txt
        export HOME=$PWD; soffice --headless --convert-to odt text.txt > log 2>&1; echo "odt $?"
        soffice --headless --convert-to txt:Text --outdir back text.odt > log 2>&1; echo "txt $?"
        md5sum < back/text.txt
        """),
    Program("qt", "python3-pyqt5", r"""
        export QT_QPA_PLATFORM=offscreen HOME=$PWD XDG_RUNTIME_DIR=$PWD; chmod 700 .
        /usr/bin/python3 -c '
import sys
from PyQt5 import QtCore, QtGui, QtWidgets
app = QtWidgets.QApplication(sys.argv)
table = QtWidgets.QTableWidget(200, 8)
for row in range(200):
    for column in range(8):
        table.setItem(row, column, QtWidgets.QTableWidgetItem(f"{row} {column}"))
table.resize(800, 600); table.show()
picture = QtGui.QPixmap(table.size()); table.render(picture)
print(picture.width(), picture.height(), table.rowCount())
QtCore.QTimer.singleShot(200, app.quit)
sys.exit(app.exec_())'; echo "status $?"
        """),
    Program("gtk", "zenity xvfb xauth", r"""
        export HOME=$PWD NO_AT_BRIDGE=1
        seq 200 | xvfb-run -a zenity --list --column=number --timeout=2 2> /dev/null; echo "status $?"
        """),
    # ---- compilers and languages ----
    Program("gcc", "gcc", r"""
        for i in $(seq 400); do echo "int f$i(int a) { return a * $i + a % ($i + 1); }"; done > many.c
        gcc -O2 -g -c many.c -o many.o; echo $?; objdump -d many.o | md5sum
        """, cheap=True),
    Program("g++", "g++", r"""
        printf '#include <map>\n#include <regex>\n#include <iostream>\nint main() { std::map<std::string, int> m;
            for (int i = 0; i < 5000; i++) m[std::to_string(i %% 97)] += i;
            std::cout << m.size() << std::regex_match("abc", std::regex("a.*")) << "\\n"; }' > a.cc
        g++ -O1 a.cc -o a; echo $?; ./a
        """, cheap=True),
    Program("clang", "clang", r"""
        for i in $(seq 400); do echo "int f$i(int a) { return a * $i + a % ($i + 1); }"; done > many.c
        clang -O2 -c many.c -o many.o; echo $?; objdump -d many.o | md5sum
        """),
    Program("rustc", "rustc", r"""
        printf 'use std::collections::BTreeMap;\nfn main() { let mut m = BTreeMap::new(); for i in 0..20000u64 {
            m.entry(i * 7919 %% 1013).or_insert_with(Vec::new).push(i.to_string()); }
            println!("{} {}", m.len(), m.values().map(|v| v.len()).sum::<usize>()); }' > a.rs
        rustc -g a.rs; echo $?; ./a
        """),
    Program("go", "golang-go", r"""
        export GOCACHE=$PWD/cache GOPATH=$PWD/path HOME=$PWD GOFLAGS=-mod=mod
        printf 'package main\nimport "fmt"\nfunc main() { m := map[int][]string{}; for i := 0; i < 20000; i++ {
            m[i %% 97] = append(m[i %% 97], fmt.Sprint(i)) }; fmt.Println(len(m), len(m[5])) }' > a.go
        go build -o a a.go; echo $?; ./a
        """),
    Program("java", "default-jdk-headless", r"""
        printf 'import java.util.*; public class A { public static void main(String[] a) {
            Map<Integer, List<String>> m =
            new TreeMap<>(); for (int i = 0; i < 200000; i++) m.computeIfAbsent(i %% 1013, k -> new ArrayList<>())
            .add("x" + i); System.out.println(m.size() + " " + m.get(7).size()); } }' > A.java
        javac A.java; echo $?; java -Xmx256m A; echo $?
        """, whole=0.95, why_less="HotSpot keeps no frame pointers in compiled code, unless -XX:+PreserveFramePointer"),
    Program("node", "nodejs", r"""
        node -e 'const z = require("zlib"), c = require("crypto"); const m = new Map();
            for (let i = 0; i < 200000; i++) m.set("k" + i % 1013, (m.get("k" + i % 1013) || "") + i % 10);
            const t = JSON.stringify([...m]); console.log(m.size, t.length, c.createHash("md5").update(t).digest("hex"),
            z.gunzipSync(z.gzipSync(t)).length)'; echo $?
        """),
    Program("perl", "perl", r"""
        perl -e '$h{$_ * 7919 % 1013} .= "x$_" for 1 .. 60000; print scalar(keys %h), " ", length(join "", %h), "\n";
            print join(",", (sort { $a <=> $b } keys %h)[0 .. 9]), "\n"; @p = map { `echo $_` } 1 .. 5; print @p'
        echo $?
        """, cheap=True),
    Program("ruby", "ruby", r"""
        ruby -e 'h = Hash.new { |t, k| t[k] = [] }; 60000.times { |i| h[i * 7919 % 1013] << "x#{i}" }
            puts h.size, h.values.flatten.join.size; puts `echo child`; t = 4.times.map { |n| Thread.new { n * n } }
            p t.map(&:value)'; echo $?
        """),
    Program("lua", "lua5.4", r"""
        lua5.4 -e 't = {} for i = 1, 100000 do t[i % 1013] = (t[i % 1013] or "") .. i % 10 end print(#t, #t[7])
            c = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(c(), c(), c())'; echo $?
        """, cheap=True),
    Program("php", "php-cli", r"""
        php -r '$t = []; for ($i = 0; $i < 200000; $i++) $t["k" . $i % 1013][] = "x$i"; ksort($t);
            echo count($t), " ", count($t["k7"]), " ", md5(json_encode($t)), "\n"; echo shell_exec("echo child");'
        echo $?
        """),
    Program("tcl", "tcl", r"""
        echo 'for {set i 0} {$i < 60000} {incr i} { lappend t([expr {$i % 1013}]) x$i }
            puts "[array size t] [llength $t(7)]"; puts [exec echo child]' | tclsh; echo $?
        """, cheap=True),
    Program("guile", "guile-3.0", r"""
        export HOME=$PWD; guile --no-auto-compile -c '(define t (make-hash-table)) (do ((i 0 (+ i 1))) ((= i 60000))
            (hash-set! t (modulo i 1013) (cons i (hash-ref t (modulo i 1013) (list)))))
            (display (hash-count (const #t) t)) (newline)'; echo $?
        """),
    Program("sbcl", "sbcl", r"""
        sbcl --noinform --non-interactive --no-userinit --eval '(let ((h (make-hash-table))) (dotimes (i 60000)
            (push i (gethash (mod i 1013) h))) (print (hash-table-count h)) (terpri))'; echo $?
        """, whole=0.85, why_less="Lisp code has no unwind tables; calls from it into C end the walk"),
    Program("ocaml", "ocaml-nox", r"""
        printf 'let () = let t = Hashtbl.create 9 in for i = 0 to 60000 do
            Hashtbl.add t (i mod 1013) (string_of_int i) done;
            Printf.printf "%%d %%d\\n" (Hashtbl.length t) (List.length (Hashtbl.find_all t 7))' > a.ml
        ocaml a.ml; echo $?; ocamlopt a.ml -o a; echo $?; ./a
        """),
    Program("ghc", "ghc", r"""
        printf 'import qualified Data.Map as M\nmain = print (M.size m, length (m M.! 7)) where\n' > a.hs
        printf '  m = M.fromListWith (++) [(i `mod` 1013, [i]) | i <- [1 .. 60000 :: Int]]\n' >> a.hs
        ghc -v0 a.hs -o a; echo $?; ./a
        """),
    Program("erlang", "erlang-base", r"""
        export HOME=$PWD; erl -noshell -eval 'T = ets:new(t, [bag]), [ets:insert(T, {I rem 1013, I}) || I <-
            lists:seq(1, 60000)], io:format("~p ~p~n", [ets:info(T, size), length(ets:lookup(T, 7))]), halt().'; echo $?
        """, whole=0.1, why_less="the code that BEAM compiles has neither unwind tables nor frame pointers"),
    Program("prolog", "swi-prolog-nox", r"""
        swipl -g 'numlist(1, 60000, L), foldl([X, A, B] >> (B is (A * 31 + X) mod 1000003), L, 7, R), write(R), nl' \
            -t halt
        echo $?
        """),
    Program("r", "r-base-core", r"""
        Rscript --vanilla -e 'set.seed(1); x <- matrix(rnorm(40000), 200); s <- svd(x);
            cat(dim(s$u), round(s$d[1], 4), "\n");
            l <- split(1:60000, (1:60000) %% 1013); cat(length(l), length(l[[8]]), "\n")'; echo $?
        """),
    Program("emacs", "emacs-nox", r"""
        export HOME=$PWD; emacs --batch --eval '(let ((h (make-hash-table))) (dotimes (i 60000)
            (push i (gethash (% i 1013) h))) (princ (format "%d\n" (hash-table-count h))))' 2> /dev/null; echo $?
        """),
    Program("vim", "vim-tiny", r"""
        seq 20000 > a; export HOME=$PWD; vim.tiny -es -u NONE -c '%s/7/seven/g' -c 'g/9/m0' -c 'wq' a; echo $?; md5sum a
        """, cheap=True),
    # ---- media, documents ----
    Program("ffmpeg", "ffmpeg", r"""
        ffmpeg -v error -f lavfi -i testsrc=size=320x240:rate=10 -t 2 -bitexact -threads 2 -c:v mpeg4 a.avi; echo $?
        ffmpeg -v error -i a.avi -bitexact -f framemd5 - | tail -3
        """),
    Program("imagemagick", "imagemagick", r"""
        convert -size 400x300 gradient:red-blue -swirl 90 -resize 50% a.ppm; echo $?; md5sum < a.ppm
        """),
    Program("graphviz", "graphviz", r"""
        { echo 'digraph g {'; for i in $(seq 150); do echo "n$i -> n$((i * 7 % 150));"; done; echo '}'; } > g.dot
        dot -Tsvg g.dot 2> /dev/null | grep -c '<path'; echo $?
        """),
    Program("ghostscript", "ghostscript", r"""
        echo '%!PS
            /Times-Roman findfont 20 scalefont setfont
            1 1 60 { dup 10 mul 50 exch moveto 20 string cvs show } for showpage' > a.ps
        gs -q -dNOPAUSE -dBATCH -sDEVICE=ppmraw -r50 -sOutputFile=a.ppm a.ps; echo $?; md5sum < a.ppm
        """),
    Program("latex", "texlive-latex-base", r"""
        export HOME=$PWD TEXMFVAR=$PWD SOURCE_DATE_EPOCH=1 FORCE_SOURCE_DATE=1
        { echo '\documentclass{article}\begin{document}'; for i in $(seq 200); do echo "Section $i \$x^{$i}\$. ";
            done; echo '\end{document}'; } > a.tex
        pdflatex -interaction=batchmode a.tex > /dev/null; echo $?; test -s a.pdf; echo $?
        """),
    Program("gnuplot", "gnuplot-nox", r"""
        gnuplot -e 'set terminal svg; set output "a.svg"; plot sin(x), x**2 with points'; echo $?; grep -c path a.svg
        """),
    # ---- tools ----
    Program("git", "git", r"""
        export HOME=$PWD GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        export GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z GIT_CONFIG_NOSYSTEM=1
        git init -q -b main w; cd w; for i in 1 2 3; do seq $i 2000 > f$i; git add .; git commit -q -m $i; done
        git gc -q; git fsck; git log --oneline --stat | cat; git clone -q . ../copy; git -C ../copy rev-parse HEAD
        """),
    Program("mercurial", "mercurial", r"""
        export HOME=$PWD HGUSER=a; hg init w; cd w
        for i in 1 2 3; do seq $i 2000 > f$i; hg commit -q -A -m $i -d '0 0'; done
        hg log -T '{rev} {node|short} {desc}\n'; hg verify -q; echo $?
        """),
    Program("subversion", "subversion", r"""
        export HOME=$PWD; svnadmin create r; svn -q checkout "file://$PWD/r" w; cd w; seq 3000 > f; svn -q add f
        svn -q commit -m one; echo $?; svn cat -r1 f | md5sum
        """),
    Program("gnupg", "gnupg", r"""
        export GNUPGHOME=$PWD/g; mkdir -m 700 g; seq 3000 > a
        gpg --batch --quiet --passphrase p --pinentry-mode loopback -c a 2> /dev/null; echo $?
        gpg --batch --quiet --passphrase p --pinentry-mode loopback -d a.gpg 2> /dev/null | md5sum; gpgconf --kill all
        """),
    Program("compression", "xz-utils bzip2 zstd 7zip", r"""
        seq 60000 > a; for t in gzip bzip2 'xz -T2' 'zstd -q -T2'; do $t -c a > b; $t -dc b | md5sum; done
        7zz a -bd -mmt2 a.7z a > /dev/null; echo $?; 7zz x -so a.7z 2> /dev/null | md5sum
        """),
    Program("jq", "jq", r"""
        seq 30000 | jq -c -s '[.[] | {k: (. % 97), v: tostring}] | group_by(.k) | map([.[0].k, length]) | .[3:6]'
        echo $?
        """, cheap=True),
    Program("text-tools", "gawk bc", r"""
        seq 50000 | gawk '{ t[$1 % 1013] = t[$1 % 1013] $1 } END { print length(t), length(t[7]) }'
        echo '2^4000 % 1000000007' | bc; seq 50000 | sort -r | uniq | tail -2; seq 9000 | sed 's/1/one/g' | md5sum
        """, cheap=True),
    Program("cmake", "cmake ninja-build gcc", r"""
        printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nadd_executable(p p.c)\n' > CMakeLists.txt
        printf '#include <stdio.h>\nint main(void) { puts("built"); }\n' > p.c
        cmake -G Ninja -B b > log 2>&1; echo $?; ninja -C b > log 2>&1; echo $?; b/p
        """),
    Program("gdb", "gdb gcc", r"""
        printf 'int twice(int a) { return 2 * a; }\nint main(void) { return twice(21) - 42; }\n' > a.c; gcc -g a.c -o a
        gdb -batch -nx -ex 'info line twice' -ex 'ptype main' a 2> /dev/null | sed 's/0x[0-9a-f]*/0x/g'; echo $?
        """),
    Program("rsync", "rsync", r"""
        mkdir from; for i in $(seq 60); do seq $i 500 > from/$i; done; rsync -a from/ to; echo $?
        diff -r from to; echo $?
        seq 9 > from/7; rsync -a --delete from/ to; cat to/7 | md5sum
        """),
    Program("zsh", "zsh", r"""
        zsh -fc 'typeset -A t; for i in {1..20000}; do t[$((i % 97))]+=x; done; print ${#t} ${#t[7]}
            print $(echo child)'
        echo $?
        """),
    Program("tmux", "tmux", r"""
        export TMUX_TMPDIR=$PWD; tmux -f /dev/null new-session -d -x 80 -y 24 'echo inside; exec sleep 600'
        wait_for sh -c 'tmux capture-pane -p | grep -q inside'; tmux capture-pane -p | head -1
        tmux kill-server; echo $?
        """),
]
