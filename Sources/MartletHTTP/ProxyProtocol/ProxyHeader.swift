package import MartletCore

/// The header of the PROXY protocol, which carries the client's address across a proxy (`proxy-protocol.txt`).
///
/// Version 1 is a line of text, version 2 is binary. It precedes everything else on a connection, TLS included.
package enum ProxyHeader {
    /// The result of parsing the first bytes of a connection.
    package enum Outcome: Sendable, Equatable {
        /// The bytes may be the start of a header.
        case needMore
        /// A complete header of `count` bytes; the client's bytes follow.
        case complete(count: Int, peer: Peer)
        /// Not a header.
        case failure(Failure)
    }

    /// The connection's original peer.
    package enum Peer: Sendable, Equatable {
        /// The client at this address.
        case address(Address)
        /// The proxy itself, such as a health check.
        case local
        /// A client whose address the proxy does not know; the connection's own peer address is the proxy's.
        case unknown
    }

    /// One end of a connection.
    package struct Address: Sendable, Hashable {
        /// 16 bytes in network order, IPv4 mapped into IPv6.
        package let bytes: [UInt8]
        package let port: UInt16

        package init(bytes: [UInt8], port: UInt16) {
            self.bytes = bytes
            self.port = port
        }

        /// An IPv4 address in its mapped form.
        init(ipv4: some Sequence<UInt8>, port: UInt16) {
            self.init(bytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + ipv4, port: port)
        }

        var isIPv4: Bool {
            bytes.count == 16 && bytes.prefix(12).elementsEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF])
        }
    }

    /// Why a header is invalid.
    package enum Failure: String, Error, Sendable, CaseIterable {
        case badSignature = "bad_signature"
        case badLine = "bad_line"
        case badAddress = "bad_address"
        case badPort = "bad_port"
        case badVersion = "bad_version"
        case badCommand = "bad_command"
        case badFamily = "bad_family"
        case badLength = "bad_length"
        case badExtension = "bad_extension"
        case badChecksum = "bad_checksum"

        /// The detailed reason for log and metrics.
        package var code: ErrorCode { ErrorCode(rawValue: "proxy_protocol.\(rawValue)") }
    }

    /// The maximum length in bytes, 4 KiB behind the fixed part of version 2; a longer header is rejected.
    package static let longest = 16 + 4096

    /// The signature of version 2.
    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    /// Parses the header at the start of a connection.
    ///
    /// Stateless: after `needMore`, call again with all bytes received so far. ``longest`` bytes are always enough.
    package static func parse(_ bytes: Span<UInt8>) -> Outcome {
        guard !bytes.isEmpty else { return .needMore }
        return bytes[0] == signature[0] ? parseBinary(bytes) : parseLine(bytes)
    }
}
