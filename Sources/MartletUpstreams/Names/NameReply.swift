package import MartletIO

/// A host name and the kind of addresses that are looked up.
package struct NameQuestion: Sendable, Hashable {
    /// The kind of addresses.
    package enum Family: Sendable, Hashable { case any, ipv4, ipv6 }

    package let host: String
    package let family: Family

    package init(host: String, family: Family) { (self.host, self.family) = (host, family) }
}

/// What a lookup has found out.
package struct NameReply: Sendable, Equatable {
    /// The result for one address family.
    package enum Part: Sendable, Equatable {
        /// Addresses with the port 0, and how long they are valid; `nil` for those of the hosts file.
        case found([SocketEndpoint], validity: Duration?)
        /// The name does not exist, or has no address of the family.
        case absent(String)
        /// Nothing is known: no server responded, or none could.
        case failed(String)
        /// The family was not asked for.
        case unasked
    }

    package var ipv4: Part
    package var ipv6: Part

    package init(ipv4: Part, ipv6: Part) { (self.ipv4, self.ipv6) = (ipv4, ipv6) }

    /// The same failure for every family that was asked for.
    package init(failed reason: String, _ family: NameQuestion.Family) {
        self.init(
            ipv4: family == .ipv6 ? .unasked : .failed(reason), ipv6: family == .ipv4 ? .unasked : .failed(reason))
    }
}
