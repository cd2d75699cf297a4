import Foundation

/// A PgBouncer in transaction mode in front of a PostgreSQL server.
package final class PgBouncer: Sendable {
    package let port: UInt16
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// - Parameter size: the number of connections to the server, for each database.
    package init(_ server: PostgreSQLServer, size: Int) throws {
        folder = try TemporaryFolder()
        port = try refusedPort()
        let users = try folder.write("\"\(PostgreSQLServer.user)\" \"\(PostgreSQLServer.password)\"\n", to: "users")
        let settings = """
            [databases]
            * = host=127.0.0.1 port=\(server.port)
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = \(port)
            unix_socket_dir =
            auth_type = scram-sha-256
            auth_file = \(users)
            pool_mode = transaction
            default_pool_size = \(size)
            max_client_conn = 200

            """
        let file = try folder.write(settings, to: "pgbouncer.ini")
        var command = ["/usr/sbin/pgbouncer", file]
        if geteuid() == 0 {
            for path in [folder.path, users, file] {
                try FileManager.default.setAttributes([.ownerAccountName: "postgres"], ofItemAtPath: path)
            }
            let change = ["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]
            command = [try Executable.named("setpriv")] + change + command
        }
        let child = try ChildProcess(command[0], Array(command.dropFirst()), output: folder, name: "pgbouncer")
        process = child
        let url = self.url(server)
        let psql = try Executable.named("psql")
        try waitUntil("PgBouncer responds on \(port)", within: .seconds(20)) {
            if let ending = child.poll() { throw TestFailure("PgBouncer ended: \(ending) \(child.errorOutput)") }
            return (try? run(psql, ["--no-psqlrc", "-qtAXc", "SELECT 1", url]))?.ending == .exited(0)
        }
    }

    deinit {
        process.kill(SIGKILL)
        _ = try? process.wait()
    }

    /// The server's URL, through the pooler.
    package func url(_ server: PostgreSQLServer, database: String = "postgres") -> String {
        server.url(database: database).replacing("@127.0.0.1:\(server.port)", with: "@127.0.0.1:\(port)")
    }
}
