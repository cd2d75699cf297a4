import Foundation
internal import Glibc

/// A name server on loopback, over UDP and TCP, that responds as a script says.
package final class DNSServer: Sendable {
    /// What is asked.
    package struct Question: Sendable, Hashable {
        /// In lower case.
        package let name: String
        /// 1 for A, 28 for AAAA.
        package let type: UInt16
        package let isTCP: Bool
    }

    /// One record; `data` is as it is transmitted.
    package struct Record: Sendable {
        let name: String
        let type: UInt16
        let seconds: UInt32
        let data: [UInt8]

        /// An address of a name.
        package static func address(_ name: String, _ bytes: [UInt8], seconds: UInt32) -> Record {
            Record(name: name, type: bytes.count == 4 ? 1 : 28, seconds: seconds, data: bytes)
        }

        /// Another name for a name.
        package static func alias(_ name: String, of canonical: String, seconds: UInt32) -> Record {
            Record(name: name, type: 5, seconds: seconds, data: DNSServer.encode(canonical))
        }
    }

    /// How the server responds to a question.
    package enum Response: Sendable {
        case records([Record])
        /// An error: 2 is SERVFAIL, 3 NXDOMAIN, 5 REFUSED.
        case code(UInt8)
        case silence
        /// So many bytes of the right response.
        case cut(Int, of: [Record])
        case wrongID([Record])
        /// These bytes after the right ID.
        case garbage([UInt8])
    }

    /// What is called for each question, on a thread of the server.
    package typealias Script = @Sendable (Question) -> Response

    private let descriptor: Int32
    private let listener: Listener
    private let script: Box<Script>
    private let record = Box<[Question]>([])

    /// Starts to serve.
    package init(_ script: @escaping Script) throws {
        let listener = try Listener(on: .loopback(0))
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let bound = try unsafe withSocketAddress(listener.endpoint) { unsafe bind(descriptor, $0, $1) }
        guard bound == 0 else { throw TestFailure("bind: \(errorText())") }
        let box = Box(script)
        (self.listener, self.descriptor, self.script) = (listener, descriptor, box)
        let record = record
        _ = Background { Self.serveDatagrams(descriptor, box, record) }
        _ = Background {
            while let socket = listener.accept() { _ = Background { try? Self.serve(socket, box, record) } }
        }
    }

    deinit {
        listener.close()
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    /// For c-ares.
    package var address: String { "\(listener.endpoint)" }
    /// The questions so far.
    package var questions: [Question] { record.value }
    /// Responds differently from now on.
    package func respond(with script: @escaping Script) { self.script.withLock { $0 = script } }

    private static func serveDatagrams(_ descriptor: Int32, _ script: Box<Script>, _ record: Box<[Question]>) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            var peer = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let count = unsafe withUnsafeMutablePointer(to: &peer) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe recvfrom(descriptor, &buffer, buffer.count, 0, $0, &length)
                }
            }
            guard count > 0 else { return }
            guard let reply = response(to: Array(buffer.prefix(count)), isTCP: false, script, record) else { continue }
            _ = unsafe withUnsafePointer(to: &peer) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe sendto(descriptor, reply, reply.count, 0, $0, length)
                }
            }
        }
    }

    private static func serve(_ socket: RawSocket, _ script: Box<Script>, _ record: Box<[Question]>) throws {
        var bytes: [UInt8] = []
        while true {
            while bytes.count < 2 || bytes.count < 2 + (Int(bytes[0]) << 8 | Int(bytes[1])) {
                let more = try socket.receive(within: .seconds(60))
                if more.isEmpty { return }
                bytes += more
            }
            let count = Int(bytes[0]) << 8 | Int(bytes[1])
            let query = Array(bytes[2..<(2 + count)])
            bytes.removeFirst(2 + count)
            guard let reply = response(to: query, isTCP: true, script, record) else { continue }
            try socket.send([UInt8(reply.count >> 8), UInt8(reply.count & 0xFF)] + reply)
        }
    }

    private static func response(
        to query: [UInt8], isTCP: Bool, _ script: Box<Script>, _ record: Box<[Question]>
    ) -> [UInt8]? {
        guard let (question, end) = question(query, isTCP: isTCP) else { return nil }
        record.withLock { $0.append(question) }
        let section = Array(query[12..<end])
        func message(_ records: [Record], code: UInt8 = 0, id: [UInt8]? = nil) -> [UInt8] {
            let body = records.flatMap(encode)
            // Datagrams without extensions have at most 512 bytes.
            let isTooLarge = !isTCP && 12 + section.count + body.count > 512
            let count = isTooLarge ? 0 : records.count
            return (id ?? Array(query[0..<2])) + [isTooLarge ? 0x87 : 0x85, 0x80 | code, 0, 1]
                + [UInt8(count >> 8), UInt8(count & 0xFF), 0, 0, 0, 0] + section + (isTooLarge ? [] : body)
        }
        switch script.value(question) {
        case .records(let records): return message(records)
        case .code(let code): return message([], code: code)
        case .silence: return nil
        case .cut(let count, let records): return Array(message(records).prefix(count))
        case .wrongID(let records): return message(records, id: [~query[0], query[1]])
        case .garbage(let bytes): return Array(query[0..<2]) + bytes
        }
    }

    private static func question(_ query: [UInt8], isTCP: Bool) -> (Question, end: Int)? {
        var labels: [String] = []
        var index = 12
        while index < query.count, query[index] > 0, index + Int(query[index]) + 5 < query.count {
            let end = index + 1 + Int(query[index])
            labels.append(String(decoding: query[(index + 1)..<end], as: UTF8.self).lowercased())
            index = end
        }
        guard index + 5 <= query.count else { return nil }
        let type = UInt16(query[index + 1]) << 8 | UInt16(query[index + 2])
        return (Question(name: labels.joined(separator: "."), type: type, isTCP: isTCP), index + 5)
    }

    private static func encode(_ record: Record) -> [UInt8] {
        let seconds = [24, 16, 8, 0].map { UInt8(record.seconds >> $0 & 0xFF) }
        return encode(record.name) + [UInt8(record.type >> 8), UInt8(record.type & 0xFF), 0, 1] + seconds
            + [UInt8(record.data.count >> 8), UInt8(record.data.count & 0xFF)] + record.data
    }

    fileprivate static func encode(_ name: String) -> [UInt8] {
        name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }
}
