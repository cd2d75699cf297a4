extension String {
    /// Whether both texts are the same bytes.
    ///
    /// `==` compares by Unicode equivalence: a Kelvin sign equals `K` there. What decides on access is compared by this.
    public func hasSameBytes(as other: String) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }
}
