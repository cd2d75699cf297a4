internal import CCurl
package import MartletCore
private import Synchronization

/// Sends mails by libcurl, on threads of its own: neither a slow mail server nor a flood of mails affects requests to
/// other services.
///
/// Certificates are always verified, and nothing is sent in clear text except to a loopback address.
package final class SMTPClient: Sendable {
    /// The number of connections to the server.
    package static let concurrency = 4

    private let server: SMTPServer
    private let pool: ThreadPool
    private let clock: Clock
    private let isStopping = Atomic(false)

    package init(_ server: SMTPServer, clock: Clock) {
        self.server = server
        self.clock = clock
        pool = ThreadPool(
            .mails, name: "martlet-smtp", threads: SMTPClient.concurrency, niceness: 0, clock: clock)
    }

    deinit { pool.stop() }

    /// Sends a mail; returns when the server has accepted it.
    /// - Parameters:
    ///   - sender: the address for `MAIL FROM`.
    ///   - recipient: the address for `RCPT TO`.
    ///   - content: header fields and text, with CRLF.
    /// - Throws: an `smtp.` code.
    package func send(from sender: String, to recipient: String, content: [UInt8]) async throws(SMTPError) {
        guard Self.isSafe(sender), Self.isSafe(recipient) else { throw .invalid }
        let result: Result<Void, SMTPError>
        do throws(ThreadPool.JobError) {
            result = try await pool.run(until: clock.monotonicTime + server.timeout) { [self] in
                do throws(SMTPError) {
                    let transfer = try SMTPTransfer(server, from: sender, to: recipient, content: content) { [self] in
                        isStopping.load(ordering: .acquiring)
                    }
                    return .success(try transfer.perform())
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            throw error == .overloaded ? .overloaded : .stopped
        }
        try result.get()
    }

    /// Aborts the mails in progress, which fail, within about a second.
    package func shutdown() {
        isStopping.store(true, ordering: .releasing)
        pool.stop()
    }

    /// Whether an address can be written into a command: printable, without spaces and angle brackets.
    private static func isSafe(_ address: String) -> Bool {
        (3...254).contains(address.utf8.count)
            && address.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x3C && $0 != 0x3E }
    }
}
