internal import MartletCore

extension UnixTime {
    /// Whether something of this second may have happened before an instant, in milliseconds since 1970.
    ///
    /// Issuers date tokens in whole seconds, and events in milliseconds. Within one second the order is
    /// unknown, and the token counts as the older one: a newer one is a second away.
    func mayPrecede(milliseconds instant: Int64) -> Bool { seconds <= instant / 1000 }
}
