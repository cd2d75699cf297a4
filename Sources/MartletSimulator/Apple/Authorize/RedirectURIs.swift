private import MartletCore

/// The registered redirect URIs of clients. A client without any may use every valid one.
struct RedirectURIs: Sendable {
    /// How many clients, and redirect URIs of each, may be registered.
    static let capacity = 64

    private var all: [(clientID: String, redirectURIs: [String])] = []

    subscript(clientID: String) -> [String]? { all.first { $0.clientID.hasSameBytes(as: clientID) }?.redirectURIs }

    /// Registers those of a client, in exchange for its former ones; none at all removes it.
    /// - Returns: whether there was room for them.
    mutating func register(_ redirectURIs: [String], of clientID: String) -> Bool {
        all.removeAll { $0.clientID.hasSameBytes(as: clientID) }
        guard !redirectURIs.isEmpty else { return true }
        guard all.count < Self.capacity, redirectURIs.count <= Self.capacity else { return false }
        all.append((clientID, redirectURIs))
        return true
    }
}
