# Checks out the base into a folder of its own beside the checkout of the job.
#
# BASE or PULL_REQUEST_BASE names the commit, TOKEN reads the repository. The outputs are the
# commit, and the folder of all that this use of the action writes.
set -euo pipefail

# A pull request is checked out as its merge into the base: the first parent is then the base that
# the branch was merged into. The event may name an older one.
parents=$(git cat-file commit HEAD | sed -n '/^$/q; s/^parent //p')
commit=$BASE
if [ -z "$commit" ] && [ "$(wc -w <<<"$parents")" -eq 2 ]; then
  commit=$(head -n 1 <<<"$parents")
fi
commit=${commit:-$PULL_REQUEST_BASE}
if [ -z "$commit" ]; then
  echo "::error::This event has no pull request. Name a commit in the input base."
  exit 1
fi

if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
  # A checkout is shallow. The first value, which is empty, drops what actions/checkout has set:
  # GitHub refuses a request with two headers of this name.
  header="AUTHORIZATION: basic $(printf 'x-access-token:%s' "$TOKEN" | base64 --wrap=0)"
  echo "::add-mask::${header##* }"
  export GIT_CONFIG_COUNT=2
  export GIT_CONFIG_KEY_0="http.$GITHUB_SERVER_URL/.extraheader" GIT_CONFIG_VALUE_0=
  export GIT_CONFIG_KEY_1="$GIT_CONFIG_KEY_0" GIT_CONFIG_VALUE_1="$header"
  git fetch --quiet --no-tags --depth=1 origin "$commit"
  commit=$(git rev-parse FETCH_HEAD)
fi
commit=$(git rev-parse "$commit^{commit}")

folder=$(mktemp --directory "$RUNNER_TEMP/vramscope-XXXXXX")
git worktree prune
git worktree add --quiet --detach "$folder/base" "$commit"
printf '%s\n' "folder=$folder" "commit=$commit" >>"$GITHUB_OUTPUT"
