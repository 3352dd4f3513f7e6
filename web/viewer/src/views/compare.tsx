// The place of the comparison of two snapshots.

export function Compare() {
  return (
    <div class="quiet">
      <h3>Compare two snapshots</h3>
      <p>
        Not on this page yet. Ranks of one run are beside each other in the overview (1), and what only one of them
        holds is among the anomalies (5).
      </p>
    </div>
  );
}
