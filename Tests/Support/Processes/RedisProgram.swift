import Foundation

/// The server program that tests start: Debian's Redis, unless `MARTLET_TEST_REDIS_SERVER` names another one, such as a
/// Valkey.
package enum RedisProgram {
    /// The path of the program.
    package static func path() throws -> String {
        if let path = ProcessInfo.processInfo.environment["MARTLET_TEST_REDIS_SERVER"], !path.isEmpty { return path }
        return try Executable.named("redis-server")
    }

    /// The ports of a node of a cluster: its own, and the one of the bus between nodes.
    struct ClusterPorts {
        let own: UInt16
        let bus: UInt16
        let options: [String]

        /// Chooses free ports.
        ///
        /// The bus of a server before 7.0 is 10,000 above its own port. For later ones it is a port of those that only
        /// tests choose.
        init() throws {
            if try RedisProgram.choosesBus.get() {
                own = try refusedPort()
                bus = try refusedPort()
                options = ["--cluster-port", String(bus)]
                return
            }
            for _ in 0..<1000 {
                let port = try refusedPort()
                guard let probe = try? Listener(on: .loopback(port + 10_000)) else { continue }
                probe.close()
                own = port
                bus = port + 10_000
                options = []
                return
            }
            throw TestFailure("no free port whose bus is free too")
        }
    }

    private static let choosesBus = Result { !(try run(try path(), ["--version"]).output.contains(" v=6.")) }
}
