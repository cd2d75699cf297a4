import MartletCore
import MartletHTTP
import MartletIO

@testable import MartletDecisions
@testable import MartletProxy

/// What opens and closes the tunnels of a ``LoopBench``.
enum TunnelText {
    /// The endpoint's response to ``BenchText/upgrade``.
    static let accepted =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    /// What the client gets of it.
    static let switched =
        "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        + "Connection: Upgrade\r\nUpgrade: websocket\r\nX-Request-Id: \(BenchText.requestID(1))\r\n\r\n"
    static let chatUpgrade = "GET /api/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n"
    static let chatAccepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n"

    /// A Close frame for a client.
    static func close(_ status: WebSocketStatus, _ text: String) -> [UInt8] {
        var frame: [UInt8] = [0x88, UInt8(text.utf8.count + 2)]
        frame += [UInt8(status.code >> 8), UInt8(status.code & 0xFF)]
        return frame + Array(text.utf8)
    }

    /// The status and the text in a client's Close frame, which is masked.
    static func unmasked(_ frame: [UInt8]) -> [UInt8] {
        guard frame.count >= 6 else { return [] }
        var payload: [UInt8] = []
        for index in 6..<frame.count { payload.append(frame[index] ^ frame[2 + (index - 6) % 4]) }
        return payload
    }
}

extension LoopBench {
    /// An open tunnel; both sides have read everything.
    func openTunnel(_ head: String = BenchText.upgrade, _ response: String = TunnelText.accepted) -> BenchExchange {
        let forwarded = forward(head)
        read(forwarded, Array(response.utf8))
        _ = (forwarded.client.end.bytes(), ready())
        return forwarded
    }

    /// The endpoint sends bytes, which are read.
    func read(_ forwarded: BenchExchange, _ bytes: [UInt8]) {
        forwarded.server.end.send(bytes)
        event(forwarded.upstream)
    }

    /// The regular check of a tunnel.
    /// - Parameter draining: how many tunnels may be ended for a drain.
    /// - Returns: how many more may.
    @discardableResult
    func checkTunnel(_ forwarded: BenchExchange, draining: Int = 0) -> Int {
        run { loop in
            var left = draining
            RequestForwarder.checkTunnel(forwarded.exchange, endsForDrain: &left, &loop)
            return left
        }
    }

    /// The reason that an exchange is recorded with.
    func reason(of exchange: Handle<Exchange>) -> ErrorCode {
        run { $0.context.counters.reasons.codes[Int($0.exchanges[exchange].record.reason)] }
    }
}
